import { DATATYPES, type Datatype, elementBytes, MillraceError } from '@millrace/shared';
import { expect } from 'chai';
import type { InferResult } from '../../inference/request.js';
import { INFERENCE, type InferCall } from '../../test-support/grpc-client.js';
import { everyTypeModel } from '../../test-support/models.js';
import { readContents } from './contents.js';
import { decodeInferRequest } from './infer-request.js';
import { encodeInferResponse, encodeStreamAnswer, encodeStreamError } from './infer-response.js';

const infer = INFERENCE.ModelInfer;
const streamInfer = INFERENCE.ModelStreamInfer;
/** As a client's library encodes it. */
const encoded = (call: InferCall): Buffer => infer?.requestSerialize(call) as Buffer;
const contentsOf = (list: string, values: unknown[]): Uint8Array[] =>
  decodeInferRequest(
    encoded({
      model_name: 'm',
      inputs: [{ name: 'a', datatype: '', shape: [], contents: { [list]: values } }],
    }),
  ).inputs[0]?.contents ?? [];

describe('the codec of infer messages', () => {
  it('reads what the library wrote, tensors without a copy', () => {
    const raw = Buffer.from([1, 2, 3, 4]);
    const message = encoded({
      model_name: 'möbel',
      model_version: '3',
      id: 'mine',
      parameters: {
        yes: { bool_param: true },
        no: { bool_param: false },
        count: { int64_param: -5 },
        text: { string_param: 'ü' },
        half: { double_param: 0.5 },
      },
      inputs: [
        { name: 'a', datatype: 'FP32', shape: [1, -1, 300], parameters: { p: { int64_param: 2 ** 53 - 1 } } },
        { name: 'b', datatype: 'BYTES', shape: [] },
      ],
      outputs: [{ name: 'o', parameters: { q: { string_param: '' } } }],
      raw_input_contents: [raw, Buffer.alloc(0)],
    });
    const read = decodeInferRequest(message);
    expect(read).to.deep.include({ modelName: 'möbel', modelVersion: '3', id: 'mine' });
    expect(read.parameters).to.deep.equal({ yes: true, no: false, count: -5, text: 'ü', half: 0.5 });
    expect(read.inputs).to.deep.equal([
      {
        name: 'a',
        datatype: 'FP32',
        shape: [1, -1, 300],
        parameters: { p: Number.MAX_SAFE_INTEGER },
        contents: [],
      },
      { name: 'b', datatype: 'BYTES', shape: [], parameters: {}, contents: [] },
    ]);
    expect(read.outputs).to.deep.equal([{ name: 'o', parameters: { q: '' } }]);
    expect(read.raw.map((bytes) => Buffer.from(bytes))).to.deep.equal([raw, Buffer.alloc(0)]);
    expect(read.raw[0]?.buffer).to.equal(message.buffer);
  });

  const typed: [Datatype, string, unknown[], number[]][] = [
    ['BOOL', 'bool_contents', [true, false], [1, 0]],
    ['INT8', 'int_contents', [-128, 127], [0x80, 0x7f]],
    ['INT16', 'int_contents', [-32_768, 258], [0, 0x80, 2, 1]],
    ['INT32', 'int_contents', [-2, 2 ** 31 - 1], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['UINT8', 'uint_contents', [0, 255], [0, 255]],
    ['UINT16', 'uint_contents', [0, 65_535], [0, 0, 255, 255]],
    ['UINT32', 'uint_contents', [1, 2 ** 32 - 1], [1, 0, 0, 0, 255, 255, 255, 255]],
    [
      'INT64',
      'int64_contents',
      ['-9223372036854775808', '9007199254740993'],
      [0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0x20, 0],
    ],
    [
      'UINT64',
      'uint64_contents',
      ['18446744073709551615', 1],
      [...Array(8).fill(255), 1, 0, 0, 0, 0, 0, 0, 0],
    ],
    ['FP32', 'fp32_contents', [1, -2], [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]],
    ['FP64', 'fp64_contents', [1, -2], [0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0]],
    ['BYTES', 'bytes_contents', [Buffer.from('é'), Buffer.alloc(0)], [2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]],
  ];
  for (const [datatype, list, values, bytes] of typed) {
    it(`reads ${list} of ${datatype} to the last digit`, () => {
      const contents = contentsOf(list, values);
      expect([...readContents(contents, datatype, values.length, 'x')]).to.deep.equal(bytes);
      expect(() => readContents(contents, datatype, values.length + 1, 'x')).to.throw(
        MillraceError,
        'x has 2 elements',
      );
      expect(() => readContents(contents, datatype, 2 ** 31 - 1, 'x')).to.throw(
        MillraceError,
        'x has 2 elements',
      );
      const other = datatype === 'FP64' ? 'FP32' : 'FP64';
      expect(() => readContents(contents, other, values.length, 'x')).to.throw(
        MillraceError,
        `x has ${list}, but`,
      );
    });
  }

  it('covers every datatype, those without a list by saying where they belong', () => {
    expect([...new Set(typed.map(([datatype]) => datatype)), 'FP16', 'BF16']).to.have.members(DATATYPES);
    for (const datatype of ['FP16', 'BF16'] as const) {
      expect(() => readContents([], datatype, 0, 'x')).to.throw(MillraceError, 'raw_input_contents');
    }
  });

  it('takes lists that are not packed, and contents that a client cut', () => {
    // Field 2 (int_contents) and field 6 (fp32_contents), one element each.
    const ints = [Buffer.from([0x10, 5]), Buffer.from([0x10, 6, 0x12, 1, 7])];
    expect([...readContents(ints, 'INT8', 3, 'x')]).to.deep.equal([5, 6, 7]);
    const floats = [Buffer.from([0x35, 0, 0, 0x80, 0x3f, 0x35, 0, 0, 0, 0xc0])];
    expect([...readContents(floats, 'FP32', 2, 'x')]).to.deep.equal([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
  });

  it('refuses elements beyond their datatype', () => {
    for (const [datatype, list, value] of [
      ['INT8', 'int_contents', 128],
      ['INT16', 'int_contents', -32_769],
      ['UINT8', 'uint_contents', 256],
      ['UINT16', 'uint_contents', 65_536],
    ] as const) {
      const read = () => readContents(contentsOf(list, [value]), datatype, 1, 'x');
      expect(read, datatype).to.throw(MillraceError, `x has an element that is no ${datatype}`);
    }
    // A number of more than 32 bits in a list of 32.
    const wide = [Buffer.from([0x12, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 1])];
    expect(() => readContents(wide, 'INT32', 1, 'x')).to.throw(MillraceError, 'no INT32');
  });

  it('fails with an error of its own on every message that ends too soon or is changed', () => {
    const message = encoded({
      model_name: 'a',
      parameters: { p: { int64_param: 300 } },
      inputs: [{ name: 'a', datatype: 'INT64', shape: [2], contents: { int64_contents: [1, '-1'] } }],
      raw_input_contents: [Buffer.from('abc')],
    });
    let refused = 0;
    const read = (bytes: Buffer): void => {
      try {
        for (const { contents } of decodeInferRequest(bytes).inputs) readContents(contents, 'INT64', 2, 'x');
      } catch (error) {
        if (!(error instanceof MillraceError)) throw error;
        expect(error.spec.status).to.equal(400);
        refused += 1;
      }
    };
    for (let end = 0; end < message.byteLength; end++) read(message.subarray(0, end));
    for (let at = 0; at < message.byteLength; at++) {
      for (let value = 0; value < 256; value++) {
        const changed = Buffer.from(message);
        changed[at] = value;
        read(changed);
      }
    }
    expect(refused).to.be.above(1000);
  });

  it('does not let a small message become many objects', () => {
    const inputs = Buffer.concat(Array(5000).fill(Buffer.from([0x2a, 0])));
    expect(() => decodeInferRequest(inputs)).to.throw(MillraceError, 'inputs must have at most');
    const raw = Buffer.concat(Array(5000).fill(Buffer.from([0x3a, 0])));
    expect(() => decodeInferRequest(raw)).to.throw(MillraceError, 'raw_input_contents must have at most');
    const shape = encoded({
      model_name: 'a',
      inputs: [{ name: 'a', datatype: 'FP32', shape: Array(33).fill(1) }],
    });
    expect(() => decodeInferRequest(shape)).to.throw(MillraceError, 'inputs[0].shape');
  });

  it('writes what the library reads', () => {
    const model = everyTypeModel('möbel');
    const result = {
      model,
      truncated: [1, 4],
      outputs: DATATYPES.map((datatype) => ({
        name: `${datatype}_out`,
        datatype,
        itemShape: [200],
        items: [1, 2].map((n) => Buffer.alloc(200 * (elementBytes(datatype) || 5), n)),
      })),
    } as unknown as InferResult;
    const asked = { id: 'mine', outputs: ['FP32_out', 'BYTES_out'], sayFinal: true };
    const answer = encodeInferResponse(result, asked).end();
    const expected = {
      model_name: 'möbel',
      model_version: '1',
      id: 'mine',
      parameters: {
        truncated: { string_param: '1,4' },
        triton_final_response: { bool_param: true },
      },
    };
    const read = infer?.responseDeserialize(answer) as Record<string, unknown>;
    expect(read).to.deep.include(expected);
    expect(read.outputs).to.deep.equal([
      { name: 'FP32_out', datatype: 'FP32', shape: [2, 200], parameters: {}, contents: null },
      { name: 'BYTES_out', datatype: 'BYTES', shape: [2, 200], parameters: {}, contents: null },
    ]);
    expect(read.raw_output_contents).to.deep.equal([
      Buffer.concat([Buffer.alloc(800, 1), Buffer.alloc(800, 2)]),
      Buffer.concat([Buffer.alloc(1000, 1), Buffer.alloc(1000, 2)]),
    ]);
    const wrapped = streamInfer?.responseDeserialize(encodeStreamAnswer(answer)) as Record<string, unknown>;
    expect(wrapped.error_message).to.equal('');
    expect(wrapped.infer_response).to.deep.include(expected);
    const long = 'x'.repeat(1000);
    const failed = streamInfer?.responseDeserialize(encodeStreamError(long, 'm', 'mine')) as Record<
      string,
      unknown
    >;
    expect(failed.error_message).to.equal(long);
    expect(failed.infer_response).to.deep.include({ model_name: 'm', id: 'mine', outputs: [] });
  });
});
