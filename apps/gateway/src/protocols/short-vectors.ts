import { MillraceError, type ModelDescription } from '@millrace/shared';
import { floatsOf } from './elements.js';

/**
 * How many numbers of its vectors a request gets.
 * @param asked what it says; null and undefined: all.
 * @returns undefined where that is all that the model gives.
 * @throws MillraceError `invalid_input` when the model's vectors can't be cut to that.
 */
export function requireDimensions(
  model: ModelDescription,
  asked: number | null | undefined,
  field = 'dimensions',
): number | undefined {
  const all = model.outputs[0]?.shape.at(-1) ?? 0;
  if (asked === undefined || asked === null || asked === all) return undefined;
  const least = model.minDimensions ?? all;
  if (asked >= least && asked < all) return asked;
  const allowed =
    least === all
      ? `must be ${all} or left out: vectors of model ${model.name} cannot be shortened`
      : `must be from ${least} to ${all} for model ${model.name}`;
  throw new MillraceError('invalid_input', `${field} ${allowed}.`, { field });
}

/**
 * The first `dimensions` numbers of an FP32 vector as bytes, scaled to length 1 unless `scale` is false (Matryoshka
 * representations, arXiv 2205.13147). A vector of zeros stays one.
 */
export function shortVector(vector: Uint8Array, dimensions: number, scale = true): Uint8Array {
  const kept = floatsOf(vector).slice(0, dimensions);
  if (scale) {
    let squares = 0;
    for (let i = 0; i < kept.length; i++) squares += (kept[i] ?? 0) ** 2;
    const length = Math.sqrt(squares);
    if (length > 0) for (let i = 0; i < kept.length; i++) kept[i] = (kept[i] ?? 0) / length;
  }
  return new Uint8Array(kept.buffer);
}
