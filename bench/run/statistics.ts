/** Median and range of one figure over the rounds. */
export interface Spread {
  median: number;
  least: number;
  most: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/**
 * Median of the rounds' own ratios: the two sides of a round were measured one after the other, so that a
 * machine that was slower for a while takes from both.
 */
export function pairedRatio(side: readonly number[], against: readonly number[]): number {
  return median(side.map((value, round) => value / (against[round] ?? Number.NaN)));
}

/** One comparison and the least it has to reach. */
export interface Part {
  name: string;
  ratio: number;
  bar: number;
}

export interface Verdict {
  ratio: number;
  bar: number;
  pass: boolean;
}

/** One part stands for itself; of several, the worst one's ratio divided by its bar, against 1. */
export function verdictOf(parts: readonly Part[]): Verdict {
  const [only] = parts;
  if (only && parts.length === 1) {
    return { ratio: only.ratio, bar: only.bar, pass: only.ratio >= only.bar };
  }
  const ratio = Math.min(...parts.map((part) => part.ratio / part.bar));
  // Not a number (a side that answered nothing) never passes.
  return { ratio, bar: 1, pass: parts.length > 0 && ratio >= 1 };
}

/** For people and JSON: four significant digits. */
export function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : value;
}
