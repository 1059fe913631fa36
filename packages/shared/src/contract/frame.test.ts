import { expect } from 'chai';
import { MillraceError } from '../errors/millrace-error.js';
import { seededRandom } from '../test-support/seeded-random.js';
import { decodeFrame, encodeFrame } from './frame.js';
import { bytesTensor, DATATYPES, elementBytes, elementCount, type Tensor } from './tensor.js';

const random = seededRandom(7);
const below = (n: number): number => Math.floor(random() * n);

function randomTensor(name: string): Tensor {
  const datatype = DATATYPES[below(DATATYPES.length)] ?? 'FP32';
  const shape = Array.from({ length: 1 + below(4) }, () => below(5));
  const count = elementCount(shape);
  if (datatype === 'BYTES') {
    const elements = Array.from({ length: count }, () =>
      Uint8Array.from({ length: below(9) }, () => below(256)),
    );
    return bytesTensor(name, elements, shape);
  }
  const data = Uint8Array.from({ length: count * elementBytes(datatype) }, () => below(256));
  return { name, datatype, shape, data };
}

function randomFrame(): { header: object; tensors: Tensor[]; frame: Buffer } {
  const header = { note: 'zwölf Boxkämpfer \u0000 "quoted"', n: below(1000) };
  const tensors = Array.from({ length: below(4) }, (_, i) => randomTensor(`t${i}`));
  return { header, tensors, frame: encodeFrame(header, tensors) };
}

describe('the frame codec', () => {
  it('gives back random headers and tensors of every datatype', () => {
    for (let i = 0; i < 500; i++) {
      const { header, tensors, frame } = randomFrame();
      const decoded = decodeFrame(frame);
      expect(decoded.header).to.deep.equal(header);
      expect(decoded.tensors.map(({ data, ...rest }) => ({ ...rest, data: [...data] }))).to.deep.equal(
        tensors.map(({ data, ...rest }) => ({ ...rest, data: [...data] })),
      );
    }
  });

  it('refuses every truncation of a frame', () => {
    const frame = encodeFrame({ a: 1 }, [bytesTensor('t', ['one', 'two'])]);
    for (let length = 0; length < frame.byteLength; length++) {
      expect(() => decodeFrame(frame.subarray(0, length)), `${length} bytes`).to.throw(
        MillraceError,
        /damaged|BYTES/,
      );
    }
  });

  it('refuses bytes behind the last tensor', () => {
    const frame = encodeFrame({}, [bytesTensor('t', ['one'])]);
    expect(() => decodeFrame(Buffer.concat([frame, Buffer.from([0])]))).to.throw(
      MillraceError,
      /1 bytes follow/,
    );
  });

  it('answers random corruption with a named error or a sound frame, never with anything else', () => {
    for (let i = 0; i < 2000; i++) {
      const { frame } = randomFrame();
      for (let flips = 1 + below(3); flips > 0; flips--) frame[below(frame.byteLength)] = below(256);
      try {
        for (const { shape, datatype, data } of decodeFrame(frame).tensors) {
          if (datatype !== 'BYTES')
            expect(data.byteLength).to.equal(elementCount(shape) * elementBytes(datatype));
        }
      } catch (error) {
        expect(error).to.be.instanceOf(MillraceError);
      }
    }
  });

  it('refuses a tensor whose bytes do not match its shape', () => {
    const data = new Uint8Array(8);
    const frame = encodeFrame({}, [{ name: 'x', datatype: 'FP32', shape: [3], data }]);
    expect(() => decodeFrame(frame)).to.throw(MillraceError, /8 bytes, but its shape \[3\] of FP32 takes 12/);
  });

  it('refuses a header that claims to be longer than the frame or the limit', () => {
    const frame = encodeFrame({}, []);
    frame.writeUInt32LE(0xffffffff, 4);
    expect(() => decodeFrame(frame)).to.throw(MillraceError, /header is over/);
    frame.writeUInt32LE(1000, 4);
    expect(() => decodeFrame(frame)).to.throw(MillraceError, /ends inside its header/);
  });
});
