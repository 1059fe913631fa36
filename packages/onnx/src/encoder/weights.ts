import { toFloat32 } from '../safetensors/floats.js';
import type { SafeTensor } from '../safetensors/read.js';
import { type EncoderConfig, UnsupportedModelError } from './config.js';
import { layerNames } from './names.js';

/** y = x W + b, W row-major [inputs, outputs]. */
export interface Linear {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

export interface Norm {
  readonly gamma: Float32Array;
  readonly beta: Float32Array;
}

export interface LayerWeights {
  /** Query, key and value side by side: [hidden, 3 x hidden]. Only the query has a bias. */
  readonly qkv: Linear;
  readonly attentionOut: Linear;
  readonly attentionNorm: Norm;
  readonly up: Linear;
  readonly down: Linear;
  readonly outputNorm: Norm;
}

export interface EncoderWeights {
  readonly vocabulary: number;
  /** [vocabulary, hidden] */
  readonly words: Float32Array;
  /** [maxPositions, hidden], with token type 0 added. */
  readonly positions: Float32Array;
  readonly embeddingNorm: Norm;
  readonly layers: readonly LayerWeights[];
}

/** The matmuls of a layer that have weights. */
export const LINEAR_KINDS = ['qkv', 'attention_out', 'up', 'down'] as const;
export type LinearKind = (typeof LINEAR_KINDS)[number];

/** What a matmul is called in files: `layer0.qkv`. */
export const matmulName = (layer: number, kind: LinearKind): string => `layer${layer}.${kind}`;

/** The weights of one matmul. */
export function linearOf(weights: EncoderWeights, index: number, kind: LinearKind): Linear {
  const layer = weights.layers[index];
  if (layer === undefined) throw new RangeError(`no layer ${index}`);
  return layer[kind === 'attention_out' ? 'attentionOut' : kind];
}

const WORDS = 'embeddings.word_embeddings.weight';

/**
 * Collects an encoder's weights from its tensors and folds in what is constant: token type 0 into the positions,
 * 1/sqrt(head size) into the query, and two biases. The key's adds the same to all scores of one query, which
 * softmax cancels, so it goes; the value's passes through attention unchanged, as each row of probabilities sums
 * to 1, so it joins the bias of the projection behind it.
 *
 * @throws UnsupportedModelError when a tensor is missing or its shape contradicts the configuration.
 */
export function collectWeights(
  tensors: ReadonlyMap<string, SafeTensor>,
  config: EncoderConfig,
): EncoderWeights {
  const source = new TensorSource(tensors);
  const { hidden, family } = config;
  const vocabulary = config.vocabulary ?? source.rows(WORDS);
  return {
    vocabulary,
    words: source.matrix(WORDS, vocabulary, hidden),
    positions: positionTable(source, config),
    embeddingNorm: source.norm('embeddings.LayerNorm', hidden),
    layers: Array.from({ length: config.layers }, (_, index) => {
      const names = layerNames(family, index);
      const value = source.linear(names.value, hidden, hidden);
      const out = source.linear(names.attentionOut, hidden, hidden);
      return {
        qkv: joinQkv(
          source.linear(names.query, hidden, hidden),
          source.linear(names.key, hidden, hidden),
          value,
          hidden / config.heads,
        ),
        attentionOut: { ...out, bias: add(out.bias, vectorTimes(value.bias, out)) },
        attentionNorm: source.norm(names.attentionNorm, hidden),
        up: source.linear(names.up, hidden, config.intermediate),
        down: source.linear(names.down, config.intermediate, hidden),
        outputNorm: source.norm(names.outputNorm, hidden),
      };
    }),
  };
}

/** Finds tensors whatever prefix the checkpoint has (`bert.`, `roberta.`, none), and checks their shapes. */
class TensorSource {
  private readonly prefix: string;

  constructor(private readonly tensors: ReadonlyMap<string, SafeTensor>) {
    const words = [...tensors.keys()].find((name) => name === WORDS || name.endsWith(`.${WORDS}`));
    if (words === undefined) throw new UnsupportedModelError(`the weights have no tensor ${WORDS}`);
    this.prefix = words.slice(0, -WORDS.length);
  }

  has(name: string): boolean {
    return this.tensors.has(this.prefix + name);
  }

  rows(name: string): number {
    return this.get(name).shape[0] ?? 0;
  }

  matrix(name: string, rows: number, columns: number): Float32Array {
    return this.floats(name, [rows, columns]);
  }

  norm(name: string, size: number): Norm {
    return { gamma: this.floats(`${name}.weight`, [size]), beta: this.floats(`${name}.bias`, [size]) };
  }

  /** Checkpoints keep [outputs, inputs]; MatMul wants the transpose. */
  linear(name: string, inputs: number, outputs: number): Linear {
    const stored = this.floats(`${name}.weight`, [outputs, inputs]);
    return {
      inputs,
      outputs,
      weight: transpose(stored, outputs, inputs),
      bias: this.floats(`${name}.bias`, [outputs]),
    };
  }

  private floats(name: string, shape: readonly number[]): Float32Array {
    const tensor = this.get(name);
    if (tensor.shape.length !== shape.length || tensor.shape.some((size, axis) => size !== shape[axis])) {
      throw new UnsupportedModelError(
        `tensor ${name} is [${tensor.shape.join(', ')}], config.json wants [${shape.join(', ')}]`,
      );
    }
    return toFloat32(tensor, name);
  }

  private get(name: string): SafeTensor {
    const tensor = this.tensors.get(this.prefix + name);
    if (tensor === undefined)
      throw new UnsupportedModelError(`the weights have no tensor ${this.prefix}${name}`);
    return tensor;
  }
}

function positionTable(source: TensorSource, config: EncoderConfig): Float32Array {
  const { hidden, maxPositions, positionOffset } = config;
  const name = 'embeddings.position_embeddings.weight';
  const all = source.matrix(name, maxPositions + positionOffset, hidden);
  const table = all.slice(positionOffset * hidden);
  const types = 'embeddings.token_type_embeddings.weight';
  if (!source.has(types)) return table;
  const typeZero = source.matrix(types, source.rows(types), hidden).subarray(0, hidden);
  return table.map((value, i) => value + (typeZero[i % hidden] ?? 0));
}

function joinQkv(query: Linear, key: Linear, value: Linear, headSize: number): Linear {
  const { inputs, outputs } = query;
  const scale = 1 / Math.sqrt(headSize);
  const weight = new Float32Array(inputs * outputs * 3);
  for (let row = 0; row < inputs; row++) {
    const from = row * outputs;
    const to = from * 3;
    weight.set(
      query.weight.subarray(from, from + outputs).map((w) => w * scale),
      to,
    );
    weight.set(key.weight.subarray(from, from + outputs), to + outputs);
    weight.set(value.weight.subarray(from, from + outputs), to + 2 * outputs);
  }
  return { inputs, outputs: outputs * 3, weight, bias: query.bias.map((b) => b * scale) };
}

function transpose(matrix: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) {
    const line = matrix.subarray(row * columns, (row + 1) * columns);
    for (let column = 0; column < columns; column++) result[column * rows + row] = line[column] ?? 0;
  }
  return result;
}

/** x W, without the bias, summed in double precision. */
function vectorTimes(x: Float32Array, { outputs, weight }: Linear): Float32Array {
  const sums = new Float64Array(outputs);
  x.forEach((value, row) => {
    const line = weight.subarray(row * outputs, (row + 1) * outputs);
    for (let column = 0; column < outputs; column++)
      sums[column] = (sums[column] ?? 0) + value * (line[column] ?? 0);
  });
  return Float32Array.from(sums);
}

const add = (a: Float32Array, b: Float32Array): Float32Array => a.map((value, i) => value + (b[i] ?? 0));
