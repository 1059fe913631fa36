import type { AnswerCheck } from './messages.js';

const FLOAT_BYTES = 4;

export interface Sample {
  bodyIndex: number;
  body: Buffer;
}

/**
 * Compares sampled answers with the right vectors: each must be within the tolerance of its own, and no
 * other expected vector may be nearer.
 */
export function compareAnswers(
  samples: readonly Sample[],
  check: AnswerCheck,
): { checked: number; wrong: number } {
  const all = Object.values(check.expected).flat();
  let wrong = 0;
  for (const { bodyIndex, body } of samples) {
    const expected = check.expected[bodyIndex] ?? [];
    const answers = check.path === 'floats' ? floatsAtEnd(body, expected) : vectorsOf(body, check.path);
    const right =
      answers?.length === expected.length &&
      expected.every((own, i) => isRight(answers[i] ?? [], own, all, check.tolerance));
    if (!right) wrong++;
  }
  return { checked: samples.length, wrong };
}

function isRight(
  answer: readonly number[],
  own: readonly number[],
  all: readonly (readonly number[])[],
  tolerance: number,
): boolean {
  if (answer.length !== own.length) return false;
  if (!answer.every((x, i) => Math.abs(x - (own[i] ?? Number.NaN)) <= tolerance)) return false;
  const distance = squaredDistance(answer, own);
  return all.every((other) => other === own || squaredDistance(answer, other) >= distance);
}

function squaredDistance(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += ((a[i] ?? 0) - (b[i] ?? 0)) ** 2;
  return sum;
}

/** The vectors that an answer holds at `path`: a list of them, or a single one. */
function vectorsOf(body: Buffer, path: readonly (string | number)[]): number[][] | undefined {
  try {
    let value: unknown = JSON.parse(body.toString('utf8'));
    for (const key of path) value = (value as Record<string | number, unknown>)[key];
    if (typeof value === 'string') return [floatsOf(Buffer.from(value, 'base64'))];
    if (!Array.isArray(value)) return undefined;
    return (Array.isArray(value[0]) ? value : [value]) as number[][];
  } catch {
    return undefined;
  }
}

/** The vectors that an answer ends with, as long as those expected. */
function floatsAtEnd(body: Buffer, expected: readonly (readonly number[])[]): number[][] {
  let at = body.byteLength - FLOAT_BYTES * expected.reduce((sum, { length }) => sum + length, 0);
  return expected.map(({ length }) => {
    const bytes = body.subarray(Math.max(0, at), at + FLOAT_BYTES * length);
    at += FLOAT_BYTES * length;
    return floatsOf(bytes);
  });
}

const floatsOf = (bytes: Buffer): number[] =>
  Array.from({ length: Math.floor(bytes.byteLength / FLOAT_BYTES) }, (_, i) =>
    bytes.readFloatLE(FLOAT_BYTES * i),
  );
