import { expect } from 'chai';
import { decodeInfer, encodeInfer } from './binary.js';
import { MillraceProtocolError } from './errors.js';
import { type Tensor, tensor } from './tensors.js';

/** Bytes of every datatype, written out by hand, little-endian. */
const SAMPLES: [Tensor, number[]][] = [
  [tensor('BOOL', [true, false]), [1, 0]],
  [tensor('UINT8', [1, 255]), [1, 255]],
  [tensor('UINT16', [0x0102, 3]), [2, 1, 3, 0]],
  [tensor('UINT32', [0x01020304]), [4, 3, 2, 1]],
  [tensor('UINT64', [0x0102030405060708n]), [8, 7, 6, 5, 4, 3, 2, 1]],
  [tensor('INT8', [-1]), [255]],
  [tensor('INT16', [-2]), [254, 255]],
  [tensor('INT32', [-3]), [253, 255, 255, 255]],
  [tensor('INT64', [-(2n ** 63n) + 1n]), [1, 0, 0, 0, 0, 0, 0, 128]],
  [tensor('FP16', Uint16Array.of(0x3c00)), [0, 0x3c]],
  [tensor('BF16', Uint16Array.of(0x3f80)), [0x80, 0x3f]],
  [tensor('FP32', [1.5]), [0, 0, 0xc0, 0x3f]],
  [tensor('FP64', [-2]), [0, 0, 0, 0, 0, 0, 0, 0xc0]],
  [tensor('BYTES', ['é', '']), [2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]],
];

function answer(outputs: object[], bytes: number[], more: object = {}): [ArrayBuffer, string] {
  const header = new TextEncoder().encode(JSON.stringify({ model_name: 'm', outputs, ...more }));
  return [Uint8Array.from([...header, ...bytes]).buffer, String(header.length)];
}

const output = (name: string, { datatype, shape }: Tensor, size: number) => ({
  name,
  datatype,
  shape,
  parameters: { binary_data_size: size },
});

describe('the binary tensor extension', () => {
  it('writes the header, then the bytes of every datatype in its order', () => {
    const tensors = Object.fromEntries(SAMPLES.map(([sample], i) => [`t${i}`, sample]));
    const { body, headerLength } = encodeInfer(tensors, {
      id: 'mine',
      parameters: { priority: 1 },
      outputs: ['x'],
    });
    const header = JSON.parse(new TextDecoder().decode(body.subarray(0, headerLength)));
    expect(header).to.deep.equal({
      id: 'mine',
      parameters: { priority: 1, binary_data_output: true },
      inputs: SAMPLES.map(([{ datatype, shape }, bytes], i) => ({
        name: `t${i}`,
        datatype,
        shape,
        parameters: { binary_data_size: bytes.length },
      })),
      outputs: [{ name: 'x' }],
    });
    expect([...body.subarray(headerLength)]).to.deep.equal(SAMPLES.flatMap(([, bytes]) => bytes));
  });

  it('writes what an array holds that is part of a larger buffer', () => {
    const part = new Float32Array(Float32Array.of(9, 1.5, 9).buffer, 4, 1);
    const { body, headerLength } = encodeInfer({ x: tensor('FP32', part) }, {});
    expect([...body.subarray(headerLength)]).to.deep.equal([0, 0, 0xc0, 0x3f]);
  });

  it('reads the bytes of every datatype, wherever they lie', () => {
    for (let shift = 0; shift < 8; shift++) {
      const outputs = SAMPLES.map(([sample, bytes], i) => output(`t${i}`, sample, bytes.length));
      const all = SAMPLES.flatMap(([, bytes]) => bytes);
      const [body, length] = answer(outputs, all, { id: 'x'.repeat(shift) });
      const { header, outputs: read } = decodeInfer(body, length);
      expect(header).to.include({ model_name: 'm', id: 'x'.repeat(shift) });
      expect(Object.keys(read)).to.have.length(SAMPLES.length);
      for (const [i, [sample]] of SAMPLES.entries())
        expect(read[`t${i}`], sample.datatype).to.deep.equal(sample);
    }
  });

  it('reads an answer without tensors', () => {
    const [body] = answer([], []);
    expect(decodeInfer(body, null).outputs).to.deep.equal({});
  });

  it('refuses an answer whose lengths, shapes and bytes don’t agree', () => {
    const floats = tensor('FP32', [1, 2]);
    const texts = tensor('BYTES', ['a']);
    const eight = [0, 0, 0, 0, 0, 0, 0, 0];
    const wrong: [string, ArrayBuffer, string | null][] = [
      ['truncated', ...answer([output('x', floats, 8)], eight.slice(1))],
      ['trailing', ...answer([output('x', floats, 8)], [...eight, 0])],
      ['size and shape', ...answer([output('x', floats, 4)], eight.slice(4))],
      ['a size that is none', ...answer([output('x', floats, -8)], [])],
      ['cut BYTES', ...answer([output('x', texts, 5)], [2, 0, 0, 0, 65])],
      ['cut BYTES length', ...answer([output('x', texts, 2)], [1, 0])],
      ['more BYTES than said', ...answer([output('x', texts, 8)], eight)],
      ['JSON data', ...answer([{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }], [])],
      ['a datatype that is none', ...answer([{ ...output('x', floats, 8), datatype: 'FP7' }], eight)],
      ['no header length', answer([output('x', floats, 8)], eight)[0], null],
      ['a header longer than the body', answer([], [])[0], '9999'],
      ['a header length that is none', answer([], [])[0], 'x'],
      ['no answer', new TextEncoder().encode('{}').buffer, '2'],
    ];
    for (const [what, body, length] of wrong) {
      expect(() => decodeInfer(body, length), what).to.throw(MillraceProtocolError);
    }
  });
});
