import { type EncoderConfig, parseEncoderConfig } from '../encoder/config.js';
import { layerNames } from '../encoder/names.js';
import { seededRandom } from '../runtime/random.js';

export interface NamedTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A safetensors file of tensors in the given order. */
export function writeSafetensors(tensors: Readonly<Record<string, NamedTensor>>): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let at = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
  }
  return rawSafetensors(JSON.stringify(header), ...Object.values(tensors).map(({ bytes }) => bytes));
}

/** A safetensors file with any header, right or wrong. */
export function rawSafetensors(header: string, ...data: Uint8Array[]): Uint8Array {
  const json = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return new Uint8Array(Buffer.concat([length, json, ...data]));
}

export interface Checkpoint {
  /** config.json */
  readonly config: Record<string, unknown>;
  readonly parsed: EncoderConfig;
  readonly safetensors: Uint8Array;
  /** The same values by their names without prefix, as stored. */
  readonly values: ReadonlyMap<string, Float32Array>;
}

const VOCABULARY = 50;

/** BERT with 2 layers, 4 heads of 8. */
export const TINY_BERT = {
  model_type: 'bert',
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 64,
  hidden_act: 'gelu',
  layer_norm_eps: 1e-12,
  max_position_embeddings: 40,
  vocab_size: VOCABULARY,
  type_vocab_size: 2,
};

/** A seeded random encoder of any family, its channels of very different sizes, as trained ones have them. */
export function randomCheckpoint(config: Record<string, unknown>, prefix = '', seed = 1): Checkpoint {
  const parsed = parseEncoderConfig(config);
  const random = seededRandom(seed);
  const values = new Map<string, Float32Array>();
  const tensors: Record<string, NamedTensor> = {};
  const put = (name: string, shape: number[], center: number, spread: number): void => {
    const size = shape.reduce((product, dim) => product * dim, 1);
    const floats = Float32Array.from({ length: size }, () => center + spread * (2 * random() - 1));
    values.set(name, floats);
    tensors[prefix + name] = { dtype: 'F32', shape, bytes: new Uint8Array(floats.buffer) };
  };
  const { hidden, intermediate } = parsed;
  const linear = (name: string, inputs: number, outputs: number): void => {
    put(`${name}.weight`, [outputs, inputs], 0, 2 / Math.sqrt(inputs));
    put(`${name}.bias`, [outputs], 0, 0.5);
  };
  const norm = (name: string): void => {
    put(`${name}.weight`, [hidden], 1, 0.8);
    put(`${name}.bias`, [hidden], 0, 0.5);
  };
  put('embeddings.word_embeddings.weight', [VOCABULARY, hidden], 0, 1);
  put('embeddings.position_embeddings.weight', [parsed.maxPositions + parsed.positionOffset, hidden], 0, 0.5);
  if (parsed.family !== 'distilbert') put('embeddings.token_type_embeddings.weight', [2, hidden], 0, 0.5);
  norm('embeddings.LayerNorm');
  for (let layer = 0; layer < parsed.layers; layer++) {
    const names = layerNames(parsed.family, layer);
    for (const name of [names.query, names.key, names.value, names.attentionOut])
      linear(name, hidden, hidden);
    norm(names.attentionNorm);
    linear(names.up, hidden, intermediate);
    linear(names.down, intermediate, hidden);
    norm(names.outputNorm);
  }
  return { config, parsed, safetensors: writeSafetensors(tensors), values };
}

/** Seeded texts of 2 to 20 random tokens. */
export function randomTexts(count: number, seed = 7): number[][] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () =>
    Array.from({ length: 2 + Math.floor(random() * 19) }, () => Math.floor(random() * VOCABULARY)),
  );
}
