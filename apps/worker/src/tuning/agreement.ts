import type { WireTensor } from '../session/messages.js';

/**
 * How far each item's outputs are from the right ones: |a - b| / |b|, Euclidean norms over an output's
 * elements, the largest of the outputs. 0 is equal; Infinity is another shape, type or text, or not a number.
 */
export function itemDifferences(outputs: readonly WireTensor[], right: readonly WireTensor[]): number[] {
  const items = Math.max(1, right[0]?.shape[0] ?? 1);
  const most = new Array<number>(items).fill(outputs.length === right.length ? 0 : Number.POSITIVE_INFINITY);
  for (const expected of right) {
    const output = outputs.find(({ name }) => name === expected.name);
    const differences = output ? tensorDifferences(output, expected, items) : [];
    for (const [i, known] of most.entries()) {
      most[i] = Math.max(known, differences[i] ?? Number.POSITIVE_INFINITY);
    }
  }
  return most;
}

function tensorDifferences(a: WireTensor, b: WireTensor, items: number): number[] {
  if (a.datatype !== b.datatype || a.shape.join() !== b.shape.join()) return [];
  const [left, right] = [floats(a), floats(b)];
  if (!left || !right) {
    // What is no float must be equal: a class or a text is right or wrong.
    return Buffer.compare(a.data, b.data) === 0 ? new Array(items).fill(0) : [];
  }
  const width = right.length / items;
  return Array.from({ length: items }, (_, item) => {
    let apart = 0;
    let length = 0;
    for (let i = item * width; i < (item + 1) * width; i++) {
      const y = right[i] ?? 0;
      apart += ((left[i] ?? Number.NaN) - y) ** 2;
      length += y ** 2;
    }
    if (apart === 0) return 0;
    const difference = Math.sqrt(apart / length);
    return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
  });
}

function floats({ datatype, data }: WireTensor): Float32Array | Float64Array | undefined {
  const bytes = data.byteOffset % 8 === 0 ? data : data.slice();
  if (datatype === 'FP32') return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  if (datatype === 'FP64') return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
  return undefined;
}
