import { expect } from 'chai';
import { type Datatype, tensor, textsOf } from './tensors.js';

describe('a tensor', () => {
  it('keeps the array it is given, with its shape', () => {
    const data = Float32Array.of(1, 2, 3, 4);
    const made = tensor('FP32', data, [2, 2]);
    expect(made.data).to.equal(data);
    expect(made).to.deep.equal({ datatype: 'FP32', shape: [2, 2], data });
    expect(tensor('UINT8', Uint8Array.of(1)).shape).to.deep.equal([1]);
    expect(tensor('INT32', new Int32Array(0), [0, 3]).data).to.have.length(0);
    expect(tensor('FP64', [0.1], []).data).to.deep.equal(Float64Array.of(0.1));
  });

  it('is made from a list, in the array of its datatype', () => {
    expect(tensor('BOOL', [true, false, 1]).data).to.deep.equal(Uint8Array.of(1, 0, 1));
    expect(tensor('UINT8', [0, 255]).data).to.deep.equal(Uint8Array.of(0, 255));
    expect(tensor('UINT16', [65_535]).data).to.deep.equal(Uint16Array.of(65_535));
    expect(tensor('UINT32', [2 ** 32 - 1]).data).to.deep.equal(Uint32Array.of(2 ** 32 - 1));
    expect(tensor('UINT64', [2n ** 64n - 1n, 3]).data).to.deep.equal(BigUint64Array.of(2n ** 64n - 1n, 3n));
    expect(tensor('INT8', [-128, 127]).data).to.deep.equal(Int8Array.of(-128, 127));
    expect(tensor('INT16', [-32_768]).data).to.deep.equal(Int16Array.of(-32_768));
    expect(tensor('INT32', [-(2 ** 31)]).data).to.deep.equal(Int32Array.of(-(2 ** 31)));
    expect(tensor('INT64', [-(2n ** 63n), 7]).data).to.deep.equal(BigInt64Array.of(-(2n ** 63n), 7n));
    expect(tensor('FP32', [0.1]).data).to.deep.equal(Float32Array.of(0.1));
    expect(tensor('FP64', [Math.PI]).data).to.deep.equal(Float64Array.of(Math.PI));
  });

  it('takes the bits of FP16 and BF16 as they are, and makes none of numbers', () => {
    const bits = Uint16Array.of(0x3c00);
    expect(tensor('FP16', bits).data).to.equal(bits);
    expect(tensor('BF16', bits).data).to.equal(bits);
    expect(() => tensor('FP16', [1.5] as never)).to.throw(TypeError, 'must be a Uint16Array.');
    expect(() => tensor('BF16', [1.5] as never)).to.throw(TypeError);
  });

  it('turns strings into UTF-8 and back', () => {
    const made = tensor('BYTES', ['é', '', 'a\u0000b', '\ufeff🐸', Uint8Array.of(65)], [5]);
    expect(made.data[0]).to.deep.equal(Uint8Array.of(0xc3, 0xa9));
    expect(textsOf(made)).to.deep.equal(['é', '', 'a\u0000b', '\ufeff🐸', 'A']);
    expect(() => textsOf(tensor('BYTES', [Uint8Array.of(0xff)]))).to.throw(TypeError);
  });

  it('refuses a shape that says another number of elements, or none at all', () => {
    expect(() => tensor('FP32', [1, 2, 3], [2, 2])).to.throw(
      RangeError,
      'The shape [2,2] has 4 elements, but the data 3.',
    );
    expect(() => tensor('FP32', [1], [-1, -1])).to.throw(RangeError);
    expect(() => tensor('FP32', [1], [0.5, 2])).to.throw(RangeError);
  });

  it('refuses what its datatype can’t hold, rather than wrap it', () => {
    const wrong: [Datatype, unknown][] = [
      ['UINT8', 256],
      ['INT8', 1.5],
      ['UINT16', -1],
      ['INT32', 2 ** 31],
      ['INT64', 2n ** 63n],
      ['UINT64', -1n],
      ['INT64', 0.5],
      ['UINT32', Number.NaN],
      ['BOOL', 2],
      ['FP32', '1'],
      ['FP32', undefined],
    ];
    for (const [datatype, value] of wrong) {
      expect(() => tensor(datatype, [value] as never), `${datatype} ${String(value)}`).to.throw(RangeError);
    }
    expect(() => tensor('BYTES', [1] as never)).to.throw(TypeError, 'Element 0');
  });

  it('refuses the array of another datatype', () => {
    expect(() => tensor('FP32', Float64Array.of(1) as never)).to.throw(TypeError, 'must be a Float32Array');
  });
});
