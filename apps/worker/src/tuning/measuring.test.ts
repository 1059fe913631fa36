import { expect } from 'chai';
import type { WireTensor } from '../session/messages.js';
import { itemDifferences } from './agreement.js';
import { fusionsAtWork } from './fusions.js';
import { nodeShares } from './node-profile.js';

const floats = (name: string, shape: number[], ...values: number[]): WireTensor => ({
  name,
  datatype: 'FP32',
  shape,
  data: new Uint8Array(Float32Array.from(values).buffer),
});

describe('the difference of outputs', () => {
  const right = [floats('y', [2, 2], 3, 4, 0, 5)];

  it('is measured item by item, by length', () => {
    expect(itemDifferences(right, right)).to.deep.equal([0, 0]);
    const [first, second] = itemDifferences([floats('y', [2, 2], 3, 4, 3, 1)], right);
    expect(first).to.equal(0);
    expect(second).to.be.closeTo(1, 1e-6);
  });

  it('is infinite for another shape, name or number of outputs, and for what is no number', () => {
    const never = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    expect(itemDifferences([floats('y', [4, 1], 3, 4, 0, 5)], right)).to.deep.equal(never);
    expect(itemDifferences([floats('z', [2, 2], 3, 4, 0, 5)], right)).to.deep.equal(never);
    expect(itemDifferences([], right)).to.deep.equal(never);
    expect(itemDifferences([floats('y', [2, 2], 3, 4, Number.NaN, 5)], right)).to.deep.equal([0, never[0]]);
  });

  it('of what is no float is none or all', () => {
    const classes = (...ids: number[]): WireTensor[] => [
      { name: 'c', datatype: 'INT32', shape: [2], data: new Uint8Array(Int32Array.from(ids).buffer) },
    ];
    expect(itemDifferences(classes(1, 2), classes(1, 2))).to.deep.equal([0, 0]);
    expect(itemDifferences(classes(1, 3), classes(1, 2))[0]).to.equal(Number.POSITIVE_INFINITY);
  });
});

describe("onnxruntime's profile", () => {
  const event = (name: string, op_name: string, dur: number, cat = 'Node') => ({
    cat,
    name,
    dur,
    args: { op_name },
  });

  it('is summed by kinds of nodes, kernel times only', () => {
    const shares = nodeShares([
      event('a_kernel_time', 'Gelu', 10),
      event('a_kernel_time', 'Gelu', 10),
      event('b_kernel_time', 'MatMul', 60),
      event('b_fence_before', 'MatMul', 500),
      event('model_run', 'MatMul', 900, 'Session'),
    ]);
    expect(shares).to.deep.equal([
      { kind: 'MatMul', share: 0.75, nodes: 1 },
      { kind: 'Gelu', share: 0.25, nodes: 1 },
    ]);
  });

  it('names the fusions at work, those of the costliest nodes first', () => {
    const found = fusionsAtWork([
      { kind: 'BiasGelu', share: 0.2, nodes: 1 },
      { kind: 'SkipLayerNormalization', share: 0.3, nodes: 1 },
      { kind: 'Softmax', share: 0.5, nodes: 1 },
    ]);
    expect(found[0]).to.deep.equal(['SkipLayerNormFusion']);
    expect(found).to.deep.include(['BiasGeluFusion']);
    expect(found.flat()).not.to.include('AttentionFusion');
  });
});
