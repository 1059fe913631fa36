import type { Clock } from '../clock.js';

/** Marks the timer of a whole call, which runs out only when a test says so. */
export const CALL_MS = 60_000;

/** A clock whose waits take no time: each moves it on, and is written down. */
export class QuickClock implements Clock {
  /** Ms of every wait between tries. */
  readonly slept: number[] = [];
  #now = 0;
  readonly #calls = new Set<() => void>();

  /** @param chance what `random` says. */
  constructor(private readonly chance = 0.5) {}

  now(): number {
    return this.#now;
  }

  epochMs(): number {
    return Date.UTC(2030, 0, 1) + this.#now;
  }

  random(): number {
    return this.chance;
  }

  after(ms: number, then: () => void): () => void {
    if (ms === CALL_MS) {
      this.#calls.add(then);
      return () => void this.#calls.delete(then);
    }
    this.slept.push(ms);
    let stopped = false;
    setImmediate(() => {
      if (stopped) return;
      this.#now += ms;
      then();
    });
    return () => {
      stopped = true;
    };
  }

  /** Lets the time of every call run out. */
  expire(): void {
    for (const then of this.#calls) then();
  }

  /** Timers of calls that have not ended. */
  get waiting(): number {
    return this.#calls.size;
  }
}
