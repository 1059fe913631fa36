/** Sweeps over the unknowns at most, and the change (of scaled unknowns) below which they are settled. */
const SWEEPS = 20_000;
const SETTLED = 1e-13;

/**
 * Non-negative least squares: x >= 0 that makes |A x - b|^2 least, by coordinate descent on the normal
 * equations (each unknown in turn is set to its best value, or to zero). Convex, so it can't end elsewhere.
 * @param rows A, one array a row, all of one length.
 */
export function nonNegativeLeastSquares(
  rows: readonly (readonly number[])[],
  b: readonly number[],
): number[] {
  const n = rows[0]?.length ?? 0;
  // Columns are scaled to length 1: their sizes differ by many powers of ten.
  const scale = Array.from({ length: n }, (_, j) => Math.hypot(...rows.map((row) => row[j] ?? 0)) || 1);
  const at = (row: readonly number[], j: number): number => (row[j] ?? 0) / (scale[j] ?? 1);
  const gram = Array.from({ length: n }, (_, j) =>
    Array.from({ length: n }, (_, k) => rows.reduce((sum, row) => sum + at(row, j) * at(row, k), 0)),
  );
  const target = Array.from({ length: n }, (_, j) =>
    rows.reduce((sum, row, i) => sum + at(row, j) * (b[i] ?? 0), 0),
  );
  const x: number[] = Array(n).fill(0);
  for (let sweep = 0, change = 1; sweep < SWEEPS && change > SETTLED; sweep++) {
    change = 0;
    for (let j = 0; j < n; j++) {
      const diagonal = gram[j]?.[j] ?? 0;
      if (diagonal === 0) continue;
      const others = x.reduce((sum, value, k) => (k === j ? sum : sum + (gram[j]?.[k] ?? 0) * value), 0);
      const next = Math.max(0, ((target[j] ?? 0) - others) / diagonal);
      change = Math.max(change, Math.abs(next - (x[j] ?? 0)));
      x[j] = next;
    }
  }
  return x.map((value, j) => value / (scale[j] ?? 1));
}
