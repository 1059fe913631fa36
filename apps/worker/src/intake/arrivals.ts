/** Weight of the newest gap in the mean. */
const WEIGHT = 0.1;

/** How far apart items arrive: a running mean, and never less than how long nothing has come. */
export class Arrivals {
  #meanMs = 1000;
  #lastAt = Number.NEGATIVE_INFINITY;

  /** `count` items arrived by `now` (ms). */
  observe(count: number, now: number): void {
    if (count <= 0) return;
    const gapMs = Math.min(1000, now - this.#lastAt) / count;
    this.#meanMs += (1 - (1 - WEIGHT) ** count) * (gapMs - this.#meanMs);
    this.#lastAt = now;
  }

  /** Expected time to the next item, in ms. */
  gapMs(now: number): number {
    return Math.max(this.#meanMs, now - this.#lastAt);
  }
}
