import { expect } from 'chai';
import ort from 'onnxruntime-node';
import { openSession } from '../runtime/session.js';
import { buildIdentity } from './build.js';

describe('the identity model', () => {
  it('is about 1 KB', () => {
    expect(buildIdentity().length).to.be.within(400, 1500);
  });

  it('returns what it is given, of every type and width, none included', async () => {
    const session = await openSession(buildIdentity());
    for (const width of [0, 1, 3]) {
      const size = 2 * width;
      const inputs = {
        fp32: new ort.Tensor('float32', new Float32Array(size).fill(0.5), [2, width]),
        int64: new ort.Tensor('int64', new BigInt64Array(size).fill(-(2n ** 63n)), [2, width]),
        bool: new ort.Tensor('bool', new Uint8Array(size).fill(1), [2, width]),
        uint8: new ort.Tensor('uint8', new Uint8Array(size).fill(255), [2, width]),
        bytes: new ort.Tensor('string', new Array<string>(size).fill('é'), [2, width]),
      };
      const outputs = await session.run(inputs);
      for (const [name, { type, dims, data }] of Object.entries(inputs)) {
        expect(outputs[`${name}_out`]).to.deep.include({ type, dims });
        expect(Array.from((outputs[`${name}_out`]?.data ?? []) as ArrayLike<unknown>)).to.deep.equal(
          Array.from(data as ArrayLike<unknown>),
        );
      }
    }
    await session.release();
  });

  it('takes inputs of different widths', async () => {
    const session = await openSession(buildIdentity());
    const outputs = await session.run({
      fp32: new ort.Tensor('float32', new Float32Array(4), [1, 4]),
      int64: new ort.Tensor('int64', new BigInt64Array(0), [1, 0]),
      bool: new ort.Tensor('bool', new Uint8Array(2), [1, 2]),
      uint8: new ort.Tensor('uint8', new Uint8Array(0), [1, 0]),
      bytes: new ort.Tensor('string', ['a'], [1, 1]),
    });
    expect(Object.values(outputs).map(({ dims }) => dims[1])).to.have.members([4, 0, 2, 0, 1]);
    await session.release();
  });
});
