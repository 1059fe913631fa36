import { setTimeout as sleep } from 'node:timers/promises';
import { mayPass } from './faults.js';

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
/** A server that is away is waited for so long, in ms: enough for a restart, or for an update of all of it. */
const LONGEST_MS = 600_000;

/** Tries things until they go well, as long as what they fail with may pass. */
export class Patience {
  readonly #signal: AbortSignal;
  readonly #onWait: (why: string) => void;

  /** @param onWait hears before each pause why there is one. */
  constructor(signal: AbortSignal, onWait: (why: string) => void) {
    this.#signal = signal;
    this.#onWait = onWait;
  }

  /**
   * @param act may call `advanced` when it got further than before: then its time begins anew.
   * @throws what will not pass, or has not for ten minutes; the signal's reason.
   */
  async with<Result>(act: (advanced: () => void) => Promise<Result>): Promise<Result> {
    let since = performance.now();
    let tries = 0;
    const advanced = (): void => {
      since = performance.now();
      tries = 0;
    };
    for (;;) {
      this.#signal.throwIfAborted();
      try {
        return await act(advanced);
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!mayPass(error)) throw error;
        const asked = 'retryAfterMs' in error ? error.retryAfterMs : undefined;
        const pause = Math.max(asked ?? 0, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries));
        tries += 1;
        if (performance.now() - since + pause > LONGEST_MS) throw error;
        this.#onWait(error.message);
        await sleep(pause * (1 + Math.random() / 4), undefined, { signal: this.#signal });
      }
    }
  }
}
