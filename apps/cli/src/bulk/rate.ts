/** What was counted longer ago than this does not bear on how fast it goes now, in ms. */
const WINDOW_MS = 15_000;

/** How fast a count grows. */
export class Rate {
  #samples: { at: number; count: number }[] = [];

  /** @param at in ms, on any clock that runs on. */
  add(at: number, count: number): void {
    const last = this.#samples.at(-1);
    // Whoever counted has ended, and another begins where it had written last.
    if (last && count < last.count) this.#samples = [];
    this.#samples.push({ at, count });
    while (at - (this.#samples[1]?.at ?? at) >= WINDOW_MS) this.#samples.shift();
  }

  /** Undefined while nothing is known of it. */
  get perSecond(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (!first || !last || last.at === first.at || last.count === first.count) return undefined;
    return ((last.count - first.count) * 1000) / (last.at - first.at);
  }
}
