/** Weight of the newest run in the mean. */
const WEIGHT = 0.1;

/**
 * Predicts how long items will run: a running mean of milliseconds per unit of padded size (token,
 * element), corrected by every run.
 */
export class RunTime {
  #msPerUnit: number;

  constructor(msPerUnit = 0.05) {
    this.#msPerUnit = msPerUnit;
  }

  /** Milliseconds that `size` units take by one session. */
  predictMs(size: number): number {
    return size * this.#msPerUnit;
  }

  /** A run of `size` padded units took `runMs`. */
  observe(size: number, runMs: number): void {
    if (size <= 0) return;
    this.#msPerUnit += WEIGHT * (runMs / size - this.#msPerUnit);
  }
}
