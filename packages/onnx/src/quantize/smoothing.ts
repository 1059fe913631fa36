import type { Linear } from '../encoder/weights.js';
import { rowMaxima } from './int8.js';

/**
 * SmoothQuant (Xiao et al. 2022, arXiv 2211.10438, eq. 4): s_c = max|x_c|^a / max|W_c|^(1-a). Dividing channel c
 * of the activations by s_c and multiplying row c of the weights by it leaves the product as it was, and moves
 * outliers from the activations, which share one scale, to the weights, which have one a column.
 *
 * @param channelMaxima largest magnitude of each input channel, [inputs].
 * @returns s, [inputs]; 1 for a channel that is always zero on either side.
 */
export function smoothingFactors(linear: Linear, channelMaxima: Float32Array, alpha: number): Float32Array {
  return rowMaxima(linear.weight, linear.outputs).map((weightMax, channel) => {
    const max = channelMaxima[channel] ?? 0;
    return max > 0 && weightMax > 0 ? max ** alpha / weightMax ** (1 - alpha) : 1;
  });
}

/** Steps an octave of the stored maxima: 4%, which smoothing, exact for any s, doesn't notice. */
const STEPS = 16;
const OFFSET = 128;

/** Channel maxima as one byte each: log2 in sixteenths, 2^-8 to 2^8; 0 stays 0. */
export function encodeMaxima(maxima: Float32Array): Uint8Array {
  return Uint8Array.from(maxima, (max) =>
    max > 0 ? Math.min(255, Math.max(1, Math.round(Math.log2(max) * STEPS) + OFFSET)) : 0,
  );
}

export function decodeMaxima(codes: Uint8Array): Float32Array {
  return Float32Array.from(codes, (code) => (code === 0 ? 0 : 2 ** ((code - OFFSET) / STEPS)));
}
