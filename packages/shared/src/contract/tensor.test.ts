import { expect } from 'chai';
import {
  bytesElements,
  bytesTensor,
  checkTensor,
  elementCount,
  joinItems,
  sliceTensor,
  splitItems,
} from './tensor.js';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('tensors', () => {
  it('count the elements of a shape and name the axis at fault', () => {
    expect(elementCount([2, 3, 4])).to.equal(24);
    expect(elementCount([])).to.equal(1);
    expect(elementCount([0, 5])).to.equal(0);
    expect(() => elementCount([0, 2 ** 40])).to.throw(/more than/);
    expect(() => elementCount([2, -1], 'inputs[0].shape')).to.throw(/inputs\[0\]\.shape\[1\]/);
    expect(() => elementCount([1.5])).to.throw(/whole number/);
    expect(() => elementCount([65536, 65536])).to.throw(/more than/);
    expect(() => elementCount([2 ** 53, 2 ** 53])).to.throw();
  });

  it('keep BYTES elements as they were, NUL and empty ones included', () => {
    const elements = ['', 'a\u0000b', 'ж', '🙂'];
    expect(bytesElements(bytesTensor('t', elements)).map(text)).to.deep.equal(elements);
  });

  it('are cut into items and joined again without a change', () => {
    const data = Float32Array.from({ length: 12 }, (_, i) => i);
    const tensor = {
      name: 'x',
      datatype: 'FP32' as const,
      shape: [3, 2, 2],
      data: new Uint8Array(data.buffer),
    };
    const joined = joinItems('x', 'FP32', [2, 2], splitItems(tensor));
    expect(joined.shape).to.deep.equal([3, 2, 2]);
    expect([...joined.data]).to.deep.equal([...tensor.data]);
  });

  it('are cut into BYTES items of several elements', () => {
    const tensor = bytesTensor('t', ['a', 'bb', 'ccc', ''], [2, 2]);
    const second = splitItems(tensor)[1] ?? new Uint8Array();
    expect(bytesElements({ ...tensor, shape: [2], data: second }).map(text)).to.deep.equal(['ccc', '']);
  });

  it('give a run of items as a tensor', () => {
    const slice = sliceTensor(bytesTensor('t', ['a', 'b', 'c', 'd']), 1, 2);
    expect(slice.shape).to.deep.equal([2]);
    expect(bytesElements(slice).map(text)).to.deep.equal(['b', 'c']);
  });

  it('are refused when BYTES elements are more, fewer or cut short', () => {
    const tensor = bytesTensor('t', ['a', 'b']);
    expect(() => checkTensor({ ...tensor, shape: [3] })).to.throw(/2 BYTES elements/);
    expect(() => checkTensor({ ...tensor, shape: [1] })).to.throw(/behind its last element/);
    expect(() => checkTensor({ ...tensor, data: tensor.data.subarray(0, 9) })).to.throw(/ends inside/);
  });
});
