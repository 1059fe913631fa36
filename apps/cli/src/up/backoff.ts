const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** What ran this long before it died counts as having been well. */
const WELL_AFTER_MS = 60_000;

/** How long to wait before starting something again that died: doubles from 0.5 s to 30 s. */
export class Backoff {
  #next = FIRST_MS;

  /** @param ranMs how long the last run lived. */
  delayMs(ranMs: number): number {
    if (ranMs >= WELL_AFTER_MS) this.#next = FIRST_MS;
    const delay = this.#next;
    this.#next = Math.min(LONGEST_MS, delay * 2);
    return delay;
  }
}

/** `0.5 s`, `16 s`. */
export function secondsText(ms: number): string {
  return `${ms / 1000} s`;
}
