/** Cosine of the angle between two vectors of one length; 0 when one of them is zero. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    const x = a[i] ?? 0;
    const y = b[i] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? dot / Math.sqrt(aa * bb) : 0;
}

/** The cosines of all pairs (i, j), i < j, in that order. */
export function pairwiseCosines(vectors: readonly Float32Array[]): Float64Array {
  const cosines = new Float64Array((vectors.length * (vectors.length - 1)) / 2);
  let at = 0;
  vectors.forEach((a, i) => {
    for (const b of vectors.slice(i + 1)) cosines[at++] = cosine(a, b);
  });
  return cosines;
}

/**
 * Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean rank.
 *
 * @returns -1 to 1; NaN when one side is constant.
 */
export function rankCorrelation(a: Float64Array, b: Float64Array): number {
  if (a.length !== b.length) throw new RangeError(`${a.length} values against ${b.length}`);
  const x = ranks(a);
  const y = ranks(b);
  const middle = (a.length - 1) / 2;
  let xy = 0;
  let xx = 0;
  let yy = 0;
  for (let i = 0; i < x.length; i++) {
    const dx = (x[i] ?? 0) - middle;
    const dy = (y[i] ?? 0) - middle;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  return xy / Math.sqrt(xx * yy);
}

function ranks(values: Float64Array): Float64Array {
  const order = Array.from(values.keys()).sort((i, j) => (values[i] ?? 0) - (values[j] ?? 0));
  const result = new Float64Array(values.length);
  for (let first = 0; first < order.length; ) {
    const value = values[order[first] ?? 0];
    let next = first + 1;
    while (next < order.length && values[order[next] ?? 0] === value) next++;
    for (const index of order.slice(first, next)) result[index] = (first + next - 1) / 2;
    first = next;
  }
  return result;
}
