import { MillraceProtocolError } from './errors.js';

const FLOAT_BYTES = 4;

/**
 * Reads FP32 numbers from base64 of their little-endian bytes, bit by bit.
 * @throws MillraceProtocolError when it is no base64, or not of whole numbers.
 */
export function floatsOfBase64(base64: string): Float32Array {
  const binary = binaryOf(base64);
  if (binary.length % FLOAT_BYTES !== 0) {
    throw new MillraceProtocolError(`An embedding of ${binary.length} bytes is no list of FP32 numbers.`);
  }
  const bytes = new DataView(new ArrayBuffer(binary.length));
  for (let i = 0; i < binary.length; i++) bytes.setUint8(i, binary.charCodeAt(i));
  const floats = new Float32Array(binary.length / FLOAT_BYTES);
  for (let i = 0; i < floats.length; i++) floats[i] = bytes.getFloat32(i * FLOAT_BYTES, true);
  return floats;
}

function binaryOf(base64: string): string {
  try {
    return atob(base64);
  } catch (cause) {
    throw new MillraceProtocolError('An embedding is not in base64, as it was asked for.', { cause });
  }
}
