import { type LinearKind, matmulName } from '../encoder/weights.js';

export interface MatmulRecipe {
  /** SmoothQuant's exponent. */
  readonly alpha: number;
  /** Share of the calibrated range that is represented; beyond it values saturate. For the reader only. */
  readonly clip: number;
  /** Of the smoothed activations: x is about (q - zeroPoint) x scale, q in 0 to 255. */
  readonly scale: number;
  readonly zeroPoint: number;
  /** Largest magnitude of each input channel, as `encodeMaxima` stores it. */
  readonly channelMaxima: Uint8Array;
}

/** The outcome of the quantizer's search for one set of weights: all that is needed to quantize them again. */
export interface Recipe {
  /** Of the safetensors file that it was searched for. */
  readonly weightsSha256: string;
  /** By `matmulName`. */
  readonly matmuls: Readonly<Record<string, MatmulRecipe>>;
}

/** A recipe that can't be used; the message names the entry. */
export class RecipeError extends Error {
  override readonly name = 'RecipeError';
}

const FORMAT = 1;

/** The recipe as a JSON file, about 30 KB for a model of 6 layers. */
export function formatRecipe({ weightsSha256, matmuls }: Recipe): string {
  const entries = Object.entries(matmuls).map(([name, { channelMaxima, ...numbers }]) => [
    name,
    { ...numbers, channelMaxima: Buffer.from(channelMaxima).toString('base64') },
  ]);
  const document = { format: FORMAT, weightsSha256, matmuls: Object.fromEntries(entries) };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** @throws RecipeError when the text isn't a recipe of a known format. */
export function parseRecipe(text: string): Recipe {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new RecipeError('the recipe is not JSON', { cause });
  }
  if (!isRecord(document) || document.format !== FORMAT) {
    throw new RecipeError(`the recipe is not of format ${FORMAT}`);
  }
  const { weightsSha256, matmuls } = document;
  if (typeof weightsSha256 !== 'string' || !isRecord(matmuls)) {
    throw new RecipeError('the recipe lacks weightsSha256 or matmuls');
  }
  const entries = Object.entries(matmuls).map(([name, entry]) => [name, parseMatmul(name, entry)] as const);
  return { weightsSha256, matmuls: Object.fromEntries(entries) };
}

function parseMatmul(name: string, entry: unknown): MatmulRecipe {
  if (!isRecord(entry)) throw new RecipeError(`${name} is not an object`);
  const { alpha, clip, scale, zeroPoint, channelMaxima } = entry;
  if (!isWithin(alpha, 0, 1)) throw new RecipeError(`${name}: alpha must be 0 to 1`);
  if (!isWithin(clip, 0, 1)) throw new RecipeError(`${name}: clip must be 0 to 1`);
  if (!isWithin(scale, Number.MIN_VALUE, Number.MAX_VALUE)) {
    throw new RecipeError(`${name}: scale must be more than 0`);
  }
  if (!isWithin(zeroPoint, 0, 255) || !Number.isInteger(zeroPoint)) {
    throw new RecipeError(`${name}: zeroPoint must be 0 to 255`);
  }
  if (typeof channelMaxima !== 'string') throw new RecipeError(`${name}: channelMaxima must be base64`);
  return {
    alpha,
    clip,
    scale,
    zeroPoint,
    channelMaxima: new Uint8Array(Buffer.from(channelMaxima, 'base64')),
  };
}

/** @throws RecipeError when the recipe has no entry for the matmul, or one of another width. */
export function matmulRecipe(recipe: Recipe, layer: number, kind: LinearKind, inputs: number): MatmulRecipe {
  const name = matmulName(layer, kind);
  const entry = recipe.matmuls[name];
  if (entry === undefined) throw new RecipeError(`the recipe has no ${name}`);
  if (entry.channelMaxima.length !== inputs) {
    throw new RecipeError(
      `${name}: ${entry.channelMaxima.length} channels in the recipe, ${inputs} in the model`,
    );
  }
  return entry;
}

const isWithin = (value: unknown, low: number, high: number): value is number =>
  typeof value === 'number' && value >= low && value <= high;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
