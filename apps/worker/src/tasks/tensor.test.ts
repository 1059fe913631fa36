import { bytesTensor, type TensorManifest } from '@millrace/shared';
import { expect } from 'chai';
import type { Prepared, RawInput } from './task.js';
import { TensorTask } from './tensor.js';

const manifest = {
  name: 'm',
  version: '1',
  task: 'tensor',
  inputs: [
    { name: 'x', datatype: 'FP32', shape: [-1, -1], optional: true },
    { name: 'word', datatype: 'BYTES', shape: [-1, -1], optional: true },
  ],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, -1] }],
  limits: { maxRequestItems: 10 },
} as TensorManifest;

const floats = (...values: number[]): RawInput => ({
  datatype: 'FP32',
  shape: [values.length],
  data: new Uint8Array(Float32Array.from(values).buffer),
});
const word = (value: string | Uint8Array): RawInput => ({
  datatype: 'BYTES',
  shape: [1],
  data: bytesTensor('word', [value]).data,
});

describe('the tensor task', () => {
  const task = new TensorTask(manifest);
  const prepare = async (inputs: Record<string, RawInput>) => {
    const [result] = await task.prepare([{ inputs: new Map(Object.entries(inputs)) }]);
    return result;
  };

  it('lays items of one shape out as one tensor, and feeds left-out inputs with nothing', async () => {
    const group = [await prepare({ x: floats(1, 2) }), await prepare({ x: floats(3, 4) })] as Prepared[];
    const [x, words] = task.assemble(group);
    expect(x?.shape).to.deep.equal([2, 2]);
    expect([...new Float32Array(x?.data.buffer ?? new ArrayBuffer(0))]).to.deep.equal([1, 2, 3, 4]);
    expect(words).to.deep.include({ shape: [2, 0] });
  });

  it('gives items of different shapes different keys', async () => {
    const one = (await prepare({ x: floats(1) })) as Prepared;
    const two = (await prepare({ x: floats(1, 2) })) as Prepared;
    expect(one.shapeKey).not.to.equal(two.shapeKey);
  });

  it('names the input, what it is and what the model takes', async () => {
    expect(await prepare({ word: floats(1) })).to.deep.include({
      code: 'invalid_input',
      message: 'The input "word" is FP32, but the model takes BYTES.',
    });
    const flat = { ...floats(1), shape: [] };
    expect(await prepare({ x: flat }))
      .to.have.property('message')
      .that.contains('has shape []');
  });

  it('refuses strings that onnxruntime would cut or change', async () => {
    expect(await prepare({ word: word('a\u0000b') }))
      .to.have.property('message')
      .that.contains('NUL');
    expect(await prepare({ word: word(Uint8Array.of(0xff)) }))
      .to.have.property('message')
      .that.contains('UTF-8');
    expect(await prepare({ word: word('жаба 🐸') })).to.have.property('size');
  });
});
