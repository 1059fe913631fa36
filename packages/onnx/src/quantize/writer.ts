import { linearOf } from '../encoder/build.js';
import type { LinearKind, WeightWriter } from '../encoder/graph.js';
import type { EncoderWeights, LayerWeights, Linear } from '../encoder/weights.js';
import type { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';
import { quantizeColumns, quantizeRows } from './int8.js';
import type { MatmulRecipe, Recipe } from './recipe.js';
import { decodeMaxima, smoothingFactors } from './smoothing.js';

/**
 * Writes weights in INT8 as QDQ: (smoothed) activation -> QuantizeLinear -> DequantizeLinear -> MatMul <-
 * DequantizeLinear <- INT8 weight. Activation scales are fixed, so an item's answer can't depend on its batch.
 */
export function int8Writer(weights: EncoderWeights, hidden: number, recipe: Recipe): WeightWriter {
  return {
    words: (graph, ids) => writeWords(graph, weights, hidden, ids),
    matmul: (graph, index, kind, x) => {
      const layer = weights.layers[index];
      const entry = recipe.matmuls[`layer${index}.${kind}`];
      if (layer === undefined || entry === undefined)
        throw new RangeError(`no recipe for layer${index}.${kind}`);
      const name = `layer${index}.${kind}`;
      const linear =
        kind === 'qkv' ? foldIntoValue(layer, hidden, recipe, index) : linearOf(weights, index, kind);
      return writeMatmul(graph, name, kind, linear, entry, x);
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

function writeMatmul(
  graph: GraphBuilder,
  name: string,
  kind: LinearKind,
  linear: Linear,
  recipe: MatmulRecipe,
  x: string,
): string {
  const { inputs, outputs } = linear;
  const factors = smoothingFactors(linear, decodeMaxima(recipe.channelMaxima), recipe.alpha);
  // Attention's output arrives smoothed: its factors are folded into the value's columns.
  const smoothed =
    kind === 'attention_out'
      ? x
      : graph.op('Mul', [
          x,
          graph.constant(
            `${name}.smoothing`,
            [inputs],
            factors.map((s) => 1 / s),
          ),
        ]);
  const scale = graph.constant(`${name}.x_scale`, [], new Float32Array([recipe.scale]));
  const zero = graph.constant(`${name}.x_zero`, [], new Uint8Array([recipe.zeroPoint]));
  const quantized = graph.op('QuantizeLinear', [smoothed, scale, zero]);
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

/** Attention mixes rows of V, never columns: dividing V's columns by s divides attention's output by s. */
function foldIntoValue(layer: LayerWeights, hidden: number, recipe: Recipe, index: number): Linear {
  const entry = recipe.matmuls[`layer${index}.attention_out`];
  if (entry === undefined) throw new RangeError(`no recipe for layer${index}.attention_out`);
  const factors = smoothingFactors(layer.attentionOut, decodeMaxima(entry.channelMaxima), entry.alpha);
  const { inputs, outputs, bias } = layer.qkv;
  const weight = layer.qkv.weight.slice();
  for (let row = 0; row < inputs; row++) {
    for (let column = 0; column < hidden; column++) {
      const i = row * outputs + 2 * hidden + column;
      weight[i] = (weight[i] ?? 0) / (factors[column] ?? 1);
    }
  }
  return { inputs, outputs, weight, bias };
}
