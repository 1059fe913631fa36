import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export const MINILM = 'all-minilm-l6-v2';

/** Pairs whose cosine is known of the published model (FP32), and how far INT8 may be from it. */
export const KNOWN_COSINES = [
  { a: 'That is a happy person', b: 'That is a happy dog', cosine: 0.6946 },
  { a: 'That is a happy person', b: 'That is a very happy person', cosine: 0.9429 },
  { a: 'That is a happy person', b: 'Today is a sunny day', cosine: 0.2569 },
] as const;
export const INT8_TOLERANCE = 0.02;

export function cosine(a: readonly number[], b: readonly number[]): number {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return dot / Math.sqrt(aa * bb);
}

/** Largest absolute difference of two vectors' elements. */
export function distance(a: readonly number[], b: readonly number[]): number {
  return a.reduce((most, x, i) => Math.max(most, Math.abs(x - (b[i] ?? Number.NaN))), 0);
}

/** The model's held-out natural sentences. */
export async function sampleSentences(): Promise<string[]> {
  const file = new URL(`../../../models/${MINILM}/samples/evaluation.txt`, import.meta.url);
  const text = await readFile(fileURLToPath(file), 'utf8');
  return text.split('\n').filter((line) => line.trim() !== '');
}
