import { padBatch, type Tokens } from '../runtime/batch.js';
import { floats, openSession } from '../runtime/session.js';

/** Embeddings of texts in one batch, padded to `length`. */
export async function embedWith(
  model: Uint8Array,
  texts: readonly Tokens[],
  length?: number,
): Promise<Float32Array[]> {
  const session = await openSession(model);
  try {
    const all = floats(await session.run(padBatch(texts, length)), 'sentence_embedding');
    const width = all.length / texts.length;
    return texts.map((_, i) => all.slice(i * width, (i + 1) * width));
  } finally {
    await session.release();
  }
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} numbers against ${b.length}`);
  return Array.from(a).reduce((max, value, i) => Math.max(max, Math.abs(value - (b[i] ?? Number.NaN))), 0);
}
