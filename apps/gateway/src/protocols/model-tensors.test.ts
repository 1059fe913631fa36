import { bytesTensor, type MillraceError, type ModelDescription } from '@millrace/shared';
import { expect } from 'chai';
import { identityModel, textModel } from '../test-support/models.js';
import { matchInputs, selectOutputs, tensorOfBytes } from './model-tensors.js';

const identity = identityModel('identity');
const text = textModel('text');

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as MillraceError).message;
  }
  return 'nothing was thrown';
}

function bytesInto(model: ModelDescription, name: string, shape: number[], data: Uint8Array) {
  const spec = model.inputs.find((input) => input.name === name);
  const [input] = matchInputs(model, [{ name, shape, datatype: spec?.datatype ?? '' }]);
  if (!input) throw new Error('It was not matched.');
  return tensorOfBytes(model, input, data);
}

describe('the checks of declared tensors', () => {
  it('take what the model takes, [N,1] for [N] among it', () => {
    const declared = [{ name: 'text', datatype: 'BYTES', shape: [3, 1] }];
    const [input] = matchInputs(text, declared);
    expect(input).to.deep.include({ shape: [3], declared: [3, 1], field: 'inputs[0]' });
  });

  it('name the field at fault in the words of the door', () => {
    const fp32 = { name: 'fp32', datatype: 'FP32', shape: [2, 2] };
    const faults: [object[], string][] = [
      [[], 'inputs must not be empty'],
      [[{ ...fp32, name: 'x' }], 'raw 0.name is "x"'],
      [[fp32, fp32], 'raw 1.name repeats "fp32"'],
      [[{ ...fp32, datatype: 'FP64' }], 'raw 0.datatype is FP64'],
      [[{ ...fp32, datatype: 'float' }], 'raw 0.datatype is no datatype'],
      [[{ ...fp32, shape: [4] }], 'raw 0.shape is [4]'],
      [[{ ...fp32, shape: [2 ** 31, 2 ** 31] }], 'raw 0.shape has more than'],
      [[{ ...fp32, shape: [-1, 2] }], 'raw 0.shape[0] must be a whole number'],
      [[{ ...fp32, shape: [0, 2] }], 'raw 0.shape must have at least one item'],
      [[fp32, { name: 'int8', datatype: 'INT8', shape: [3, 1] }], 'inputs must all have the same first'],
    ];
    for (const [declared, message] of faults) {
      const match = () => matchInputs(identity, declared as (typeof fp32)[], (index) => `raw ${index}`);
      expect(messageOf(match)).to.include(message);
    }
    expect(messageOf(() => matchInputs(text, [fp32]))).to.include('but model text has "text"');
  });

  it('make a tensor of just the bytes that its shape takes, without a copy', () => {
    const data = new Uint8Array(16);
    expect(bytesInto(identity, 'fp32', [2, 2], data).data).to.equal(data);
    for (const bytes of [0, 15, 17]) {
      const message = messageOf(() => bytesInto(identity, 'fp32', [2, 2], new Uint8Array(bytes)));
      expect(message).to.include(`inputs[0] has ${bytes} bytes, but its shape [2,2] of FP32 takes 16`);
    }
  });

  it('look at what bytes mean: lengths of BYTES, values of BOOL, texts of a text model', () => {
    const strings = bytesTensor('', ['ab', '']).data;
    expect(bytesInto(identity, 'bytes', [2, 1], strings).shape).to.deep.equal([2, 1]);
    expect(messageOf(() => bytesInto(identity, 'bytes', [3, 1], strings))).to.include('has 2 BYTES elements');
    expect(messageOf(() => bytesInto(identity, 'bytes', [1, 1], strings))).to.include('bytes behind');
    expect(messageOf(() => bytesInto(identity, 'bytes', [2, 1], strings.subarray(0, 9)))).to.include(
      'ends inside',
    );
    const huge = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 1);
    expect(messageOf(() => bytesInto(identity, 'bytes', [1, 1], huge))).to.include('ends inside');
    expect(messageOf(() => bytesInto(identity, 'bool', [1, 3], Uint8Array.of(0, 1, 2)))).to.include(
      'data[2]',
    );
    expect(messageOf(() => bytesInto(text, 'text', [2], strings))).to.include('data[1] must not be empty');
    const broken = bytesTensor('', [Uint8Array.of(0xff, 0xfe)]).data;
    expect(messageOf(() => bytesInto(text, 'text', [1], broken))).to.include('data[0] is not valid UTF-8');
  });

  it('select outputs in the order asked, all where none is', () => {
    expect(selectOutputs(identity, [])).to.equal(identity.outputs);
    const names = selectOutputs(identity, ['int8_out', 'fp32_out']).map(({ name }) => name);
    expect(names).to.deep.equal(['int8_out', 'fp32_out']);
    expect(messageOf(() => selectOutputs(identity, ['x']))).to.include('outputs[0].name is "x"');
    expect(messageOf(() => selectOutputs(identity, ['int8_out', 'int8_out']))).to.include(
      'outputs[1].name repeats',
    );
  });
});
