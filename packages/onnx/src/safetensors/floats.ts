import { type SafeTensor, SafetensorsError } from './read.js';

/**
 * A tensor's values as float32, row-major. Exact for F32, F16 and BF16; never a view of the file, whose tensors
 * may be unaligned.
 *
 * @throws SafetensorsError for any other datatype.
 */
export function toFloat32(tensor: SafeTensor, name: string): Float32Array {
  const copy = new Uint8Array(tensor.bytes).buffer;
  if (tensor.dtype === 'F32') return new Float32Array(copy);
  if (tensor.dtype === 'F16') return Float32Array.from(new Uint16Array(copy), halfToFloat);
  if (tensor.dtype === 'BF16') {
    // bfloat16 is the upper half of a float32.
    return new Float32Array(Uint32Array.from(new Uint16Array(copy), (bits) => bits << 16).buffer);
  }
  throw new SafetensorsError(`tensor ${name} is ${tensor.dtype}; F32, F16 or BF16 is needed`);
}

/** IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and 10 fraction bits. */
function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
