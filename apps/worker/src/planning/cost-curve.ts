import { nonNegativeLeastSquares } from './nnls.js';

/** One measured run: `batch` items padded to `size` took `ms`. */
export interface CurvePoint {
  batch: number;
  /** Tokens or elements of the largest item. */
  size: number;
  ms: number;
}

/** time(batch, size) = fixed + perItem * batch + perUnit * batch * size + perSquare * batch * size^2, in ms. */
export interface CurveTerms {
  fixed: number;
  perItem: number;
  perUnit: number;
  perSquare: number;
}

/** Weight of the newest run in the correction. */
const WEIGHT = 0.02;
/** One run may not pull the correction further than this, either way: a paused process says nothing. */
const MOST = 4;

/**
 * What a run will take, fitted to measurements on this machine and corrected slowly by what serving
 * observes: on shared cores a run takes longer while the rest works.
 */
export class CostCurve {
  #correction = 1;
  /** Items and milliseconds of the latest runs, older ones fading out. */
  #items = 0;
  #ms = 0;

  constructor(readonly terms: CurveTerms) {}

  /**
   * Fits the terms by non-negative least squares on relative errors: being wrong by a millisecond matters
   * more for a short run.
   */
  static fit(points: readonly CurvePoint[]): CostCurve {
    const rows = points.map(({ batch, size, ms }) =>
      [1, batch, batch * size, batch * size * size].map((t) => t / ms),
    );
    const [fixed = 0, perItem = 0, perUnit = 0, perSquare = 0] = nonNegativeLeastSquares(
      rows,
      points.map(() => 1),
    );
    return new CostCurve({ fixed, perItem, perUnit, perSquare });
  }

  /** Milliseconds that a run of `batch` items padded to `size` takes by one session, as corrected. */
  predictMs(batch: number, size: number): number {
    return this.#correction * this.restMs(batch, size);
  }

  /** The same at rest, as measured. */
  restMs(batch: number, size: number): number {
    const { fixed, perItem, perUnit, perSquare } = this.terms;
    return fixed + batch * (perItem + size * (perUnit + size * perSquare));
  }

  /** What an item adds to a run at rest, in ms. */
  itemMs(size: number): number {
    return this.restMs(1, size) - this.terms.fixed;
  }

  /** What starting a run costs whatever is in it, in ms, as corrected. */
  get fixedMs(): number {
    return this.#correction * this.terms.fixed;
  }

  /** How much longer runs take now than at rest; 1 is the same. */
  get correction(): number {
    return this.#correction;
  }

  /** Milliseconds an item took lately, its share of its run; until there was a run, what one of `size` alone takes. */
  msPerItem(size: number): number {
    return this.#items > 0 ? this.#ms / this.#items : this.predictMs(1, size);
  }

  observe(batch: number, size: number, ms: number): void {
    this.#items += batch - WEIGHT * this.#items;
    this.#ms += ms - WEIGHT * this.#ms;
    const rest = this.restMs(batch, size);
    if (rest <= 0) return;
    const seen = Math.min(this.#correction * MOST, Math.max(this.#correction / MOST, ms / rest));
    this.#correction += WEIGHT * (seen - this.#correction);
  }

  /** Mean and largest relative error over points, at rest. */
  errors(points: readonly CurvePoint[]): { mean: number; largest: number } {
    const errors = points.map(({ batch, size, ms }) => Math.abs(this.restMs(batch, size) / ms - 1));
    return {
      mean: errors.reduce((sum, e) => sum + e, 0) / Math.max(1, errors.length),
      largest: Math.max(0, ...errors),
    };
  }
}
