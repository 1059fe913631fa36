import { expect } from 'chai';
import { rawSafetensors, writeSafetensors } from '../test-support/checkpoint.js';
import { toFloat32 } from './floats.js';
import { readSafetensors, SafetensorsError } from './read.js';

const f32 = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

const entry = (dtype: unknown, shape: unknown, offsets: unknown): string =>
  JSON.stringify({ a: { dtype, shape, data_offsets: offsets } });

function tensorOf(dtype: string, bits: number[]): Float32Array {
  const bytes = new Uint8Array(Uint16Array.from(bits).buffer);
  const tensor = readSafetensors(writeSafetensors({ x: { dtype, shape: [bits.length], bytes } })).get('x');
  if (tensor === undefined) throw new Error('no tensor');
  return toFloat32(tensor, 'x');
}

describe('safetensors', () => {
  it('gives every tensor its name, type, shape and values', () => {
    const file = writeSafetensors({
      m: { dtype: 'F32', shape: [2, 2], bytes: f32(1, 2, 3, 4) },
      empty: { dtype: 'F32', shape: [0, 3], bytes: f32() },
      ids: { dtype: 'I64', shape: [1], bytes: new Uint8Array(8).fill(1) },
    });
    const tensors = readSafetensors(file);
    expect([...tensors.keys()]).to.deep.equal(['m', 'empty', 'ids']);
    expect(tensors.get('m')).to.deep.include({ dtype: 'F32', shape: [2, 2] });
    const [m, ids] = [tensors.get('m'), tensors.get('ids')];
    if (m === undefined || ids === undefined) throw new Error('a tensor is missing');
    expect([...toFloat32(m, 'm')]).to.deep.equal([1, 2, 3, 4]);
    expect(() => toFloat32(ids, 'ids')).to.throw(SafetensorsError, /ids is I64/);
  });

  it('reads a Buffer that is part of a larger one', () => {
    const file = writeSafetensors({ m: { dtype: 'F32', shape: [2], bytes: f32(5, 6) } });
    const part = Buffer.concat([Buffer.from([9, 9, 9]), file, Buffer.from([9])]).subarray(3, 3 + file.length);
    const m = readSafetensors(part).get('m');
    expect(m === undefined ? [] : [...toFloat32(m, 'm')]).to.deep.equal([5, 6]);
  });

  it('converts half precision exactly', () => {
    expect([...tensorOf('F16', [0x3c00, 0xc000, 0x3555, 0x0001, 0x7bff, 0x8000])]).to.deep.equal([
      1,
      -2,
      0.333251953125,
      2 ** -24,
      65504,
      -0,
    ]);
    const [infinite, nan] = tensorOf('F16', [0xfc00, 0x7e00]);
    expect(infinite).to.equal(Number.NEGATIVE_INFINITY);
    expect(nan).to.be.NaN;
    expect([...tensorOf('BF16', [0x3f80, 0xc000, 0x3eab])]).to.deep.equal([1, -2, 0.333984375]);
  });

  const broken: [string, Uint8Array, RegExp][] = [
    ['too short for a length', new Uint8Array(7), /too few/],
    ['a huge header', Uint8Array.from([255, 255, 255, 255, 255, 255, 255, 255]), /over the format's/],
    ['a header beyond the end', rawSafetensors('{}').subarray(0, 9), /the header should have 2 bytes/],
    ['a header that is no JSON', rawSafetensors('{"a":'), /not JSON/],
    [
      'a header that is no UTF-8',
      rawSafetensors('').map((b, i) => (i === 0 ? 1 : b)),
      /the header should have/,
    ],
    ['a header that is a list', rawSafetensors('[]'), /not a JSON object/],
    ['an entry that is no object', rawSafetensors('{"a":1}'), /not an object/],
    ['an unknown datatype', rawSafetensors(entry('F31', [1], [0, 4]), f32(1)), /unknown datatype "F31"/],
    [
      'a datatype of the prototype',
      rawSafetensors(entry('toString', [1], [0, 4]), f32(1)),
      /unknown datatype/,
    ],
    ['a negative size', rawSafetensors(entry('F32', [-1], [0, 4]), f32(1)), /malformed shape/],
    ['three offsets', rawSafetensors(entry('F32', [1], [0, 4, 8]), f32(1)), /malformed data_offsets/],
    ['offsets in reverse', rawSafetensors(entry('F32', [1], [4, 0]), f32(1)), /malformed data_offsets/],
    ['a size unlike the shape', rawSafetensors(entry('F32', [2], [0, 4]), f32(1)), /4 bytes for F32 \[2\]/],
    [
      'an overflowing shape',
      rawSafetensors(entry('F32', [2 ** 40, 2 ** 40], [0, 4]), f32(1)),
      /4 bytes for F32/,
    ],
    ['a cut file', rawSafetensors(entry('F32', [2], [0, 8]), f32(1)), /cut off/],
    ['bytes after the last tensor', rawSafetensors(entry('F32', [1], [0, 4]), f32(1, 2)), /4 bytes after/],
    ['a hole', rawSafetensors(entry('F32', [1], [4, 8]), f32(1, 2)), /a hole of 4 bytes/],
    [
      'overlapping tensors',
      rawSafetensors(
        JSON.stringify({
          a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] },
          b: { dtype: 'F32', shape: [1], data_offsets: [4, 8] },
        }),
        f32(1, 2),
      ),
      /b overlaps/,
    ],
  ];
  for (const [what, file, message] of broken) {
    it(`refuses ${what}`, () => {
      expect(() => readSafetensors(file)).to.throw(SafetensorsError, message);
    });
  }
});
