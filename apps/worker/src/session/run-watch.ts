import type { SessionClient } from './session-client.js';

const MOST_TICK_MS = 1000;
const LEAST_TICK_MS = 25;

/**
 * Looks now and then how long each session has been in its run, and tells of one past its limit. Time is
 * added up from look to look, none of them counting for much more than its due: a process that was stopped
 * for a minute and goes on has not been in its run for that minute.
 */
export class RunWatch {
  readonly #runs = new Map<SessionClient, { id: number; ms: number }>();
  readonly #timer: NodeJS.Timeout;
  readonly #mostMs: number;
  #lookedAt = performance.now();

  constructor(
    private readonly clients: readonly SessionClient[],
    leastLimitMs: number,
    private readonly onOverrun: (client: SessionClient, ms: number) => void,
  ) {
    const tickMs = Math.min(MOST_TICK_MS, Math.max(LEAST_TICK_MS, leastLimitMs / 8));
    this.#mostMs = 2 * tickMs;
    this.#timer = setInterval(() => this.look(), tickMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  look(): void {
    const now = performance.now();
    const passed = Math.min(now - this.#lookedAt, this.#mostMs);
    this.#lookedAt = now;
    for (const client of this.clients) {
      const { head } = client;
      const known = this.#runs.get(client);
      if (!head) this.#runs.delete(client);
      else if (known?.id !== head.id) this.#runs.set(client, { id: head.id, ms: 0 });
      else {
        known.ms += passed;
        if (known.ms > head.limitMs) this.onOverrun(client, known.ms);
      }
    }
  }
}
