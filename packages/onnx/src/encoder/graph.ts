import type { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';
import { activate } from './activation.js';
import type { EncoderConfig, Pooling } from './config.js';
import type { EncoderWeights, LayerWeights, LinearKind, Norm } from './weights.js';

export interface EncoderOptions {
  readonly config: EncoderConfig;
  readonly pooling: Pooling;
  /** Scale each embedding to length 1. */
  readonly normalize: boolean;
}

/** How weights are written: as they are, or quantized. */
export interface WeightWriter {
  /** Rows of the word table: [batch, seq] ids -> [batch, seq, hidden]. */
  words(graph: GraphBuilder, ids: string): string;
  /** x W, without the bias: [batch, seq, inputs] -> [batch, seq, outputs]. */
  matmul(graph: GraphBuilder, layer: number, kind: LinearKind, x: string): string;
}

/**
 * Writes a post-norm transformer encoder (Vaswani et al. 2017; BERT, Devlin et al. 2018) with its pooling.
 *
 * Inputs `input_ids`, `attention_mask`: int64 [batch, seq], padding at the end. Output `sentence_embedding`:
 * float32 [batch, hidden].
 */
export function writeEncoder(
  graph: GraphBuilder,
  weights: EncoderWeights,
  options: EncoderOptions,
  writer: WeightWriter,
): void {
  const { config } = options;
  const ids = graph.input('input_ids', DataType.INT64, ['batch', 'seq']);
  const attentionMask = graph.input('attention_mask', DataType.INT64, ['batch', 'seq']);
  const mask = graph.op('Cast', [attentionMask], { to: DataType.FLOAT });
  const hide = hidePadding(graph, mask);
  let x = embed(graph, weights, config, writer, ids);
  weights.layers.forEach((layer, index) => {
    x = writeLayer(graph, layer, index, config, writer, x, hide);
  });
  const pooled = options.pooling === 'cls' ? firstToken(graph, x) : maskedMean(graph, x, mask);
  if (options.normalize) graph.op('LpNormalization', [pooled], { axis: 1, p: 2 }, 'sentence_embedding');
  else graph.op('Identity', [pooled], {}, 'sentence_embedding');
  graph.output('sentence_embedding', DataType.FLOAT, ['batch', config.hidden]);
}

/** -10,000 on the scores of padding: its probability is then exactly 0. [batch, 1, 1, seq] */
function hidePadding(graph: GraphBuilder, mask: string): string {
  const absent = graph.op('Sub', [graph.scalar(1), mask]);
  return graph.op('Mul', [graph.op('Unsqueeze', [absent, graph.ints(1, 2)]), graph.scalar(-10_000)]);
}

function embed(
  graph: GraphBuilder,
  weights: EncoderWeights,
  config: EncoderConfig,
  writer: WeightWriter,
  ids: string,
): string {
  const length = graph.op('Gather', [graph.op('Shape', [ids]), graph.int(1)], { axis: 0 });
  const places = graph.op('Range', [graph.int(0), length, graph.int(1)]);
  const table = graph.constant('positions', [config.maxPositions, config.hidden], weights.positions);
  const sum = graph.op('Add', [writer.words(graph, ids), graph.op('Gather', [table, places])]);
  return norm(graph, 'embeddings', weights.embeddingNorm, config, sum);
}

function writeLayer(
  graph: GraphBuilder,
  layer: LayerWeights,
  index: number,
  config: EncoderConfig,
  writer: WeightWriter,
  x: string,
  hide: string,
): string {
  const at = `layer${index}`;
  const biased = (name: string, value: string, bias: Float32Array): string =>
    graph.op('Add', [value, graph.constant(`${at}.${name}.bias`, [bias.length], bias)]);
  const mixed = attention(graph, writer.matmul(graph, index, 'qkv', x), layer, at, config, hide);
  const projected = biased(
    'attention_out',
    writer.matmul(graph, index, 'attention_out', mixed),
    layer.attentionOut.bias,
  );
  const attended = norm(
    graph,
    `${at}.attention`,
    layer.attentionNorm,
    config,
    graph.op('Add', [projected, x]),
  );
  const up = biased('up', writer.matmul(graph, index, 'up', attended), layer.up.bias);
  const active = activate(graph, config.activation, up);
  const down = biased('down', writer.matmul(graph, index, 'down', active), layer.down.bias);
  return norm(graph, `${at}.output`, layer.outputNorm, config, graph.op('Add', [down, attended]));
}

/** Scaled dot-product attention over all heads: [batch, seq, 3 x hidden] -> [batch, seq, hidden]. */
function attention(
  graph: GraphBuilder,
  qkv: string,
  layer: LayerWeights,
  at: string,
  { heads, hidden }: EncoderConfig,
  hide: string,
): string {
  const [q, k, v] = graph.multi('Split', [qkv, graph.ints(hidden, hidden, hidden)], 3, { axis: -1 }) as [
    string,
    string,
    string,
  ];
  const query = graph.op('Add', [q, graph.constant(`${at}.query.bias`, [hidden], layer.qkv.bias)]);
  const split = (value: string, perm: number[]): string =>
    graph.op('Transpose', [graph.op('Reshape', [value, graph.ints(0, 0, heads, hidden / heads)])], { perm });
  const scores = graph.op('MatMul', [split(query, [0, 2, 1, 3]), split(k, [0, 2, 3, 1])]);
  const weights = graph.op('Softmax', [graph.op('Add', [scores, hide])], { axis: -1 });
  const mixed = graph.op('MatMul', [weights, split(v, [0, 2, 1, 3])]);
  return graph.op('Reshape', [
    graph.op('Transpose', [mixed], { perm: [0, 2, 1, 3] }),
    graph.ints(0, 0, hidden),
  ]);
}

function norm(
  graph: GraphBuilder,
  name: string,
  { gamma, beta }: Norm,
  config: EncoderConfig,
  x: string,
): string {
  return graph.op(
    'LayerNormalization',
    [
      x,
      graph.constant(`${name}.gamma`, [gamma.length], gamma),
      graph.constant(`${name}.beta`, [beta.length], beta),
    ],
    { axis: -1, epsilon: { float: config.layerNormEpsilon } },
  );
}

function firstToken(graph: GraphBuilder, x: string): string {
  return graph.op('Gather', [x, graph.int(0)], { axis: 1 });
}

/** Mean over the mask; a row without a single token is 0, not NaN. */
function maskedMean(graph: GraphBuilder, x: string, mask: string): string {
  const rows = graph.op('Unsqueeze', [mask, graph.ints(1)]);
  const total = graph.op('Squeeze', [graph.op('MatMul', [rows, x]), graph.ints(1)]);
  const count = graph.op('ReduceSum', [mask, graph.ints(1)], { keepdims: 1 });
  return graph.op('Div', [total, graph.op('Max', [count, graph.scalar(1e-9)])]);
}
