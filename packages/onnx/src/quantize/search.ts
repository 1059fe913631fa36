import ort from 'onnxruntime-node';
import type { Linear } from '../encoder/weights.js';
import { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';
import { floats, openSession } from '../runtime/session.js';
import type { Activations } from './calibrate.js';
import { quantizeColumns } from './int8.js';
import type { MatmulRecipe } from './recipe.js';
import { decodeMaxima, encodeMaxima, smoothingFactors } from './smoothing.js';

const ALPHAS = [0, 0.25, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
const CLIPS = [1, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5];

interface Range {
  readonly low: number;
  readonly high: number;
}

/**
 * Finds the exponent and the clip with which a quantized matmul is closest to the exact one, by the sum of squared
 * differences over the calibration rows. The products run on onnxruntime: in JavaScript they would take half an
 * hour.
 */
export class MatmulSearch {
  private constructor(
    private readonly exact: ort.InferenceSession,
    private readonly trial: ort.InferenceSession,
  ) {}

  static async open(): Promise<MatmulSearch> {
    return new MatmulSearch(await openSession(exactGraph()), await openSession(trialGraph()));
  }

  async run(linear: Linear, activations: Activations): Promise<MatmulRecipe> {
    const { inputs, outputs, weight } = linear;
    const channelMaxima = encodeMaxima(channelMaximaOf(activations, inputs));
    const x = new ort.Tensor('float32', activations.data, [activations.rows, inputs]);
    const product = await this.exact.run({ x, weight: new ort.Tensor('float32', weight, [inputs, outputs]) });
    const y = new ort.Tensor('float32', floats(product, 'y'), [activations.rows, outputs]);
    let least = Number.POSITIVE_INFINITY;
    let best: MatmulRecipe = { alpha: 0, clip: 1, scale: 1, zeroPoint: 0, channelMaxima };
    for (const alpha of ALPHAS) {
      const factors = smoothingFactors(linear, decodeMaxima(channelMaxima), alpha);
      const { values, scales } = quantizeColumns(linear, factors);
      const inverse = factors.map((s) => 1 / s);
      const range = smoothedRange(activations, inputs, inverse);
      const feeds = {
        x,
        y,
        smoothing: new ort.Tensor('float32', inverse, [inputs]),
        weight: new ort.Tensor('int8', values, [inputs, outputs]),
        weight_scales: new ort.Tensor('float32', scales, [outputs]),
        weight_zeros: new ort.Tensor('int8', new Int8Array(outputs), [outputs]),
      };
      for (const clip of CLIPS) {
        const { scale, zeroPoint } = quantization(range, clip);
        const result = await this.trial.run({
          ...feeds,
          scale: new ort.Tensor('float32', [scale], []),
          zero: new ort.Tensor('uint8', [zeroPoint], []),
        });
        const [error = Number.NaN] = floats(result, 'error');
        if (error >= least) continue;
        least = error;
        best = { alpha, clip, scale, zeroPoint, channelMaxima };
      }
    }
    if (least === Number.POSITIVE_INFINITY) throw new Error('no quantization gives finite outputs');
    return best;
  }

  async close(): Promise<void> {
    await this.exact.release();
    await this.trial.release();
  }
}

/** y = x W */
function exactGraph(): Uint8Array {
  const graph = new GraphBuilder('exact');
  const x = graph.input('x', DataType.FLOAT, ['rows', 'inputs']);
  const weight = graph.input('weight', DataType.FLOAT, ['inputs', 'outputs']);
  graph.op('MatMul', [x, weight], {}, 'y');
  graph.output('y', DataType.FLOAT, ['rows', 'outputs']);
  return graph.toBytes();
}

/** One trial: smooth, quantize, multiply, compare with y. */
function trialGraph(): Uint8Array {
  const graph = new GraphBuilder('trial');
  const x = graph.input('x', DataType.FLOAT, ['rows', 'inputs']);
  const y = graph.input('y', DataType.FLOAT, ['rows', 'outputs']);
  const smoothing = graph.input('smoothing', DataType.FLOAT, ['inputs']);
  const scale = graph.input('scale', DataType.FLOAT, []);
  const zero = graph.input('zero', DataType.UINT8, []);
  const weight = graph.input('weight', DataType.INT8, ['inputs', 'outputs']);
  const scales = graph.input('weight_scales', DataType.FLOAT, ['outputs']);
  const zeros = graph.input('weight_zeros', DataType.INT8, ['outputs']);
  const quantized = graph.op('QuantizeLinear', [graph.op('Mul', [x, smoothing]), scale, zero]);
  const product = graph.op('MatMul', [
    graph.op('DequantizeLinear', [quantized, scale, zero]),
    graph.op('DequantizeLinear', [weight, scales, zeros], { axis: 1 }),
  ]);
  graph.op('ReduceSumSquare', [graph.op('Sub', [product, y])], { keepdims: 0 }, 'error');
  graph.output('error', DataType.FLOAT, []);
  return graph.toBytes();
}

function channelMaximaOf({ data }: Activations, inputs: number): Float32Array {
  const maxima = new Float32Array(inputs);
  for (let i = 0, channel = 0; i < data.length; i++, channel = channel + 1 === inputs ? 0 : channel + 1) {
    const magnitude = Math.abs(data[i] ?? 0);
    if (magnitude > (maxima[channel] ?? 0)) maxima[channel] = magnitude;
  }
  return maxima;
}

/** Lowest and highest smoothed value; 0 is always in the range, as it must be exact. */
function smoothedRange({ data }: Activations, inputs: number, inverse: Float32Array): Range {
  let low = 0;
  let high = 0;
  for (let i = 0, channel = 0; i < data.length; i++, channel = channel + 1 === inputs ? 0 : channel + 1) {
    const value = (data[i] ?? 0) * (inverse[channel] ?? 1);
    if (value < low) low = value;
    else if (value > high) high = value;
  }
  return { low, high };
}

/** Asymmetric uint8 over the clipped range. */
function quantization({ low, high }: Range, clip: number): { scale: number; zeroPoint: number } {
  const scale = Math.fround(((high - low) * clip) / 255) || 1;
  return { scale, zeroPoint: Math.min(255, Math.max(0, Math.round((-low * clip) / scale))) };
}
