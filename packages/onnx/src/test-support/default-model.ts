import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EncoderSource } from '../encoder/build.js';
import { parseRecipe, type Recipe } from '../quantize/recipe.js';
import type { Tokens } from '../runtime/batch.js';
import { tokenize } from '../runtime/tokenize.js';

const NAME = 'all-minilm-l6-v2';
/** What the repository holds of the model. */
const FOLDER = new URL(`../../../../models/${NAME}/`, import.meta.url);

/** The default model's architecture, as its config.json has it. */
const CONFIG = {
  hidden_size: 384,
  num_hidden_layers: 6,
  num_attention_heads: 12,
  intermediate_size: 1536,
  hidden_act: 'gelu',
  layer_norm_eps: 1e-12,
  max_position_embeddings: 512,
  vocab_size: 30522,
};

export interface DefaultModel {
  readonly source: EncoderSource;
  readonly recipe: Recipe;
  tokens(texts: readonly string[]): Tokens[];
  samples(name: 'calibration' | 'evaluation'): string[];
}

/** @throws Error that says what to do when the weights aren't there: these tests don't skip. */
export function defaultModel(): DefaultModel {
  const folder = weightsFolder();
  const tokenizer = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')) as object;
  return {
    source: {
      safetensors: readFileSync(join(folder, 'model.safetensors')),
      config: CONFIG,
      pooling: 'mean',
      normalize: true,
    },
    recipe: parseRecipe(readFileSync(new URL('recipe.json', FOLDER), 'utf8')),
    tokens: (texts) => tokenize(tokenizer, texts, 256),
    samples: (name) =>
      readFileSync(new URL(`samples/${name}.txt`, FOLDER), 'utf8')
        .trim()
        .split('\n'),
  };
}

/** The files lie in the model's folder, or in a folder of its version in there, as in a cache. */
function weightsFolder(): string {
  const root = process.env.MILLRACE_TEST_MODELS;
  if (root === undefined) {
    throw new Error('set MILLRACE_TEST_MODELS to a model cache ("npm test" does it by itself)');
  }
  const model = join(root, NAME);
  const versions = existsSync(model) ? readdirSync(model).map((version) => join(model, version)) : [];
  const found = [model, ...versions].find((folder) => existsSync(join(folder, 'model.safetensors')));
  if (found !== undefined) return found;
  throw new Error(`MILLRACE_TEST_MODELS is ${root}, which has no ${NAME}: "npm test" fetches it`);
}
