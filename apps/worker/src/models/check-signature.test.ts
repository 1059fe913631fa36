import type { Manifest, TensorSpec } from '@millrace/shared';
import { expect } from 'chai';
import { checkSignature } from './check-signature.js';

const x: TensorSpec = { name: 'x', datatype: 'FP32', shape: [-1, 4] };
const y: TensorSpec = { name: 'y', datatype: 'FP32', shape: [-1, 2] };
const tensor = (inputs: TensorSpec[], outputs: TensorSpec[]) =>
  ({ name: 'm', task: 'tensor', inputs, outputs }) as Manifest;

describe('a manifest beside its ONNX file', () => {
  it('agrees with open dimensions on either side', () => {
    checkSignature(tensor([x], [y]), { inputs: [x], outputs: [y] });
    checkSignature(tensor([{ ...x, shape: [-1, -1] }], [y]), {
      inputs: [x],
      outputs: [{ ...y, shape: [-1, -1] }],
    });
    checkSignature(tensor([x], [y]), { inputs: [x], outputs: [y, { ...y, name: 'more' }] });
  });

  it('is refused where it says another name, datatype or shape, with both', () => {
    const file = { inputs: [x], outputs: [y] };
    const faults: [Manifest, RegExp][] = [
      [tensor([{ ...x, name: 'xx' }], [y]), /input xx FP32 \[-1,4\], but its file has x FP32 \[-1,4\]/],
      [tensor([x], [{ ...y, name: 'z' }]), /output z .* has y FP32/],
      [tensor([x], [{ ...y, datatype: 'FP64' }]), /output y FP64 .* has y FP32/],
      [tensor([x], [{ ...y, shape: [-1, 3] }]), /output y FP32 \[-1,3\], but its file has y FP32 \[-1,2\]/],
      [tensor([{ ...x, shape: [-1, 4, 1] }], [y]), /input x FP32 \[-1,4,1\]/],
    ];
    for (const [manifest, says] of faults) expect(() => checkSignature(manifest, file)).to.throw(says);
  });

  it('is refused where the file takes more than it lists', () => {
    const file = { inputs: [x, { ...x, name: 'mask' }], outputs: [y] };
    expect(() => checkSignature(tensor([x], [y]), file)).to.throw(/also takes the input mask/);
  });

  it('of an encoder is refused for other dimensions', () => {
    const ids: TensorSpec = { name: 'input_ids', datatype: 'INT64', shape: [-1, -1] };
    const file = {
      inputs: [ids, { ...ids, name: 'attention_mask' }],
      outputs: [{ name: 'sentence_embedding', datatype: 'FP32' as const, shape: [-1, 384] }],
    };
    const encoder = (dimensions: number) =>
      ({ name: 'm', task: 'text-embedding', embedding: { dimensions } }) as Manifest;
    checkSignature(encoder(384), file);
    expect(() => checkSignature(encoder(768), file)).to.throw(/gives sentence_embedding FP32 \[-1,384\]/);
    expect(() => checkSignature(encoder(384), { ...file, inputs: [ids] })).to.throw(/attention_mask/);
  });
});
