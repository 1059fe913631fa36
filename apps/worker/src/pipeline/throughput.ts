/** Rates are read over at least this long, in ms: shorter ones only show single runs. */
const SHORTEST_MS = 500;
/** Weight of the newest reading. */
const SMOOTHING = 0.5;

/** Items answered a second, as seen lately. */
export class Throughput {
  #count = 0;
  #since = performance.now();
  #perSecond = 0;

  add(items: number): void {
    this.#count += items;
  }

  /** As of the last reading. */
  get lately(): number {
    return this.#perSecond;
  }

  /** Asked about once a second; a longer silence weighs as one reading. */
  perSecond(): number {
    const now = performance.now();
    const ms = now - this.#since;
    if (ms >= SHORTEST_MS) {
      this.#perSecond += SMOOTHING * ((this.#count * 1000) / ms - this.#perSecond);
      this.#count = 0;
      this.#since = now;
    }
    return this.#perSecond;
  }
}
