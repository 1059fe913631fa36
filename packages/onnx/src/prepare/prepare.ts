import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { buildEncoder, type EncoderSource } from '../encoder/build.js';
import type { Pooling } from '../encoder/config.js';
import { buildIdentity } from '../identity/build.js';
import { quantizeEncoder } from '../quantize/encoder.js';
import { parseRecipe, RecipeError } from '../quantize/recipe.js';
import type { Progress } from '../runtime/progress.js';
import { type CachedFile, cachedFile } from './cache.js';

/** Raised whenever the files that the builders write change. */
const BUILDER_VERSION = 1;

export interface EncoderBuild {
  readonly from: 'bert';
  /** The checkpoint; `sha256` is taken as verified, so that a start needn't read 90 MB to find the cached model. */
  readonly weights: { readonly path: string; readonly sha256: string };
  /** config.json's fields. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly pooling: Pooling;
  readonly normalize: boolean;
  readonly precision: 'fp32' | 'int8';
  /** Path of the recipe; needed for int8. */
  readonly recipe?: string | undefined;
}

export type ModelBuild = EncoderBuild | { readonly from: 'identity' };

/**
 * Makes the ONNX file of a model in the cache, or finds it there, by everything that it depends on.
 *
 * @returns its path, sha256 and size; `made` says whether it had to be made.
 * @throws RecipeError, SafetensorsError, UnsupportedModelError, or the file system's errors.
 */
export async function prepareModel(
  build: ModelBuild,
  cacheFolder: string,
  onProgress: Progress = () => {},
): Promise<CachedFile & { made: boolean }> {
  if (build.from === 'identity') {
    return cachedFile(cacheFolder, `identity-${digest([BUILDER_VERSION])}.onnx`, async () => buildIdentity());
  }
  const { weights, config, pooling, normalize, precision } = build;
  const recipe = precision === 'int8' ? await readRecipe(build.recipe) : undefined;
  const key = digest([
    BUILDER_VERSION,
    weights.sha256,
    sortedEntries(config),
    pooling,
    normalize,
    recipe ?? '',
  ]);
  return cachedFile(cacheFolder, `model-${precision}-${key}.onnx`, async () => {
    onProgress('read', 0);
    const source: EncoderSource = { safetensors: await readFile(weights.path), config, pooling, normalize };
    onProgress(precision === 'int8' ? 'quantize' : 'build', 0.2);
    const model = recipe === undefined ? buildEncoder(source) : quantizeEncoder(source, parseRecipe(recipe));
    onProgress('write', 0.9);
    return model;
  });
}

async function readRecipe(path: string | undefined): Promise<string> {
  if (path === undefined) throw new RecipeError('int8 needs a recipe');
  return readFile(path, 'utf8');
}

const sortedEntries = (record: Readonly<Record<string, unknown>>): unknown[] =>
  Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));

/** 16 hex digits: enough to tell apart the few files of one cache. */
const digest = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
