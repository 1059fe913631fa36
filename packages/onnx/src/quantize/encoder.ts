import { createHash } from 'node:crypto';
import { type EncoderSource, loadEncoder } from '../encoder/build.js';
import { writeEncoder } from '../encoder/graph.js';
import { LINEAR_KINDS, linearOf, matmulName } from '../encoder/weights.js';
import { GraphBuilder } from '../graph/builder.js';
import type { Tokens } from '../runtime/batch.js';
import type { Progress } from '../runtime/progress.js';
import { Calibration } from './calibrate.js';
import { type MatmulRecipe, type Recipe, RecipeError } from './recipe.js';
import { MatmulSearch } from './search.js';
import { int8Writer } from './writer.js';

/**
 * Builds a BERT-like encoder in INT8 as an ONNX file with the inputs and the output of `buildEncoder`.
 *
 * @throws RecipeError when the recipe belongs to other weights, besides what `buildEncoder` throws.
 */
export function quantizeEncoder(source: EncoderSource, recipe: Recipe): Uint8Array {
  const sha256 = sha256Of(source.safetensors);
  if (recipe.weightsSha256 !== sha256) {
    throw new RecipeError(`the recipe is for weights ${recipe.weightsSha256}, these are ${sha256}`);
  }
  const { weights, options } = loadEncoder(source);
  const graph = new GraphBuilder('encoder_int8');
  writeEncoder(graph, weights, options, int8Writer(weights, options.config.hidden, recipe));
  return graph.toBytes();
}

/** Enough to find outliers with, and few enough for half a second a layer and matmul. */
const CALIBRATION_ROWS = 2000;

/**
 * Searches the recipe for an encoder: for each matmul the smoothing exponent, the clip and the activation scale
 * with the least squared output error. Deterministic for equal weights and texts on one kind of CPU.
 *
 * @param texts natural sentences as token ids, a few hundred; random words have other ranges.
 */
export async function searchRecipe(
  source: EncoderSource,
  texts: readonly Tokens[],
  onProgress: Progress = () => {},
): Promise<Recipe> {
  if (texts.length === 0) throw new RangeError('calibration needs texts');
  const { weights, options } = loadEncoder(source);
  const calibration = await Calibration.open(weights, options, texts);
  const search = await MatmulSearch.open();
  const matmuls: Record<string, MatmulRecipe> = {};
  const total = weights.layers.length * LINEAR_KINDS.length;
  try {
    for (let layer = 0; layer < weights.layers.length; layer++) {
      const activations = await calibration.layer(layer, CALIBRATION_ROWS);
      for (const kind of LINEAR_KINDS) {
        matmuls[matmulName(layer, kind)] = await search.run(
          linearOf(weights, layer, kind),
          activations[kind],
        );
        onProgress('search', Object.keys(matmuls).length / total);
      }
    }
  } finally {
    await search.close();
    await calibration.close();
  }
  return { weightsSha256: sha256Of(source.safetensors), matmuls };
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
