import type { WeightWriter } from '../encoder/graph.js';
import {
  type EncoderWeights,
  type Linear,
  type LinearKind,
  linearOf,
  matmulName,
} from '../encoder/weights.js';
import type { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';
import { quantizeColumns, quantizeRows } from './int8.js';
import { type MatmulRecipe, matmulRecipe, type Recipe } from './recipe.js';
import { decodeMaxima, smoothingFactors } from './smoothing.js';

/**
 * Writes weights in INT8 as QDQ: (smoothed) activation -> QuantizeLinear -> DequantizeLinear -> MatMul <-
 * DequantizeLinear <- INT8 weight. Activation scales are fixed, so an item's answer can't depend on its batch.
 */
export function int8Writer(weights: EncoderWeights, hidden: number, recipe: Recipe): WeightWriter {
  const factorsOf = (layer: number, kind: LinearKind): { entry: MatmulRecipe; factors: Float32Array } => {
    const linear = linearOf(weights, layer, kind);
    const entry = matmulRecipe(recipe, layer, kind, linear.inputs);
    return { entry, factors: smoothingFactors(linear, decodeMaxima(entry.channelMaxima), entry.alpha) };
  };
  return {
    words: (graph, ids) => writeWords(graph, weights, hidden, ids),
    matmul: (graph, layer, kind, x) => {
      const name = matmulName(layer, kind);
      const { entry, factors } = factorsOf(layer, kind);
      const linear = linearOf(weights, layer, kind);
      if (kind === 'attention_out') return writeMatmul(graph, name, linear, entry, factors, x);
      const inverse = factors.map((s) => 1 / s);
      const smoothed = graph.op('Mul', [x, graph.constant(`${name}.smoothing`, [linear.inputs], inverse)]);
      if (kind !== 'qkv') return writeMatmul(graph, name, linear, entry, factors, smoothed);
      const folded = foldIntoValue(linear, hidden, factorsOf(layer, 'attention_out').factors);
      return writeMatmul(graph, name, folded, entry, factors, smoothed);
    },
  };
}

/** One scale a row of the word table: a rare word's row may be ten times as large as a common one's. */
function writeWords(graph: GraphBuilder, weights: EncoderWeights, hidden: number, ids: string): string {
  const { values, scales } = quantizeRows(weights.words, hidden);
  const rows = graph.op('Gather', [graph.constant('words', [weights.vocabulary, hidden], values), ids]);
  const scale = graph.op('Gather', [graph.constant('words.scales', [weights.vocabulary, 1], scales), ids]);
  return graph.op('Mul', [graph.op('Cast', [rows], { to: DataType.FLOAT }), scale]);
}

/** @param x the smoothed activation, [..., inputs] */
function writeMatmul(
  graph: GraphBuilder,
  name: string,
  linear: Linear,
  recipe: MatmulRecipe,
  factors: Float32Array,
  x: string,
): string {
  const { inputs, outputs } = linear;
  const scale = graph.constant(`${name}.x_scale`, [], new Float32Array([recipe.scale]));
  const zero = graph.constant(`${name}.x_zero`, [], new Uint8Array([recipe.zeroPoint]));
  const quantized = graph.op('QuantizeLinear', [x, scale, zero]);
  const activation = graph.op('DequantizeLinear', [quantized, scale, zero]);
  const { values, scales } = quantizeColumns(linear, factors);
  const weight = graph.op(
    'DequantizeLinear',
    [
      graph.constant(`${name}.weight`, [inputs, outputs], values),
      graph.constant(`${name}.scales`, [outputs], scales),
      graph.constant(`${name}.zeros`, [outputs], new Int8Array(outputs)),
    ],
    { axis: 1 },
  );
  return graph.op('MatMul', [activation, weight]);
}

/**
 * Attention mixes V's rows and never its columns, so dividing V's columns by s smooths attention's output without
 * an operator of its own.
 */
function foldIntoValue(
  { inputs, outputs, weight, bias }: Linear,
  hidden: number,
  factors: Float32Array,
): Linear {
  const folded = weight.slice();
  for (let row = 0; row < inputs; row++) {
    for (let column = 0, i = row * outputs + 2 * hidden; column < hidden; column++, i++) {
      folded[i] = (folded[i] ?? 0) / (factors[column] ?? 1);
    }
  }
  return { inputs, outputs, weight: folded, bias };
}
