import { connect as connectHttp2 } from 'node:http2';
import { status } from '@grpc/grpc-js';
import { BULL_PREFIX } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../../gateway.js';
import {
  GrpcClient,
  INFERENCE,
  type InferCall,
  type InferTensor,
  rawTexts,
} from '../../test-support/grpc-client.js';
import { Harness } from '../../test-support/harness.js';
import { everyTypeModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName } from '../../test-support/redis.js';
import { StandInWorker } from '../../test-support/stand-in-worker.js';

const text = uniqueName('grpc-bad-text');
const tensors = uniqueName('grpc-bad-tensors');

const floats = (tensor: Partial<InferTensor> = {}, rest: Partial<InferCall> = {}): InferCall => ({
  model_name: tensors,
  inputs: [{ name: 'fp32', datatype: 'FP32', shape: [1, 2], ...tensor }],
  raw_input_contents: [Buffer.alloc(8)],
  ...rest,
});
const typed = (tensor: Partial<InferTensor>): InferCall => floats(tensor, { raw_input_contents: [] });
const texts = (raw: Buffer, shape = [1]): InferCall => ({
  model_name: text,
  inputs: [{ name: 'text', datatype: 'BYTES', shape }],
  raw_input_contents: [raw],
});
const parameters = (name: string, value: object): InferCall => floats({}, { parameters: { [name]: value } });

/** What is wrong, the call, and what the answer names; INVALID_ARGUMENT where no other code is given. */
const FAULTS: [string, InferCall, string, status?][] = [
  ['no model', floats({}, { model_name: '' }), 'model_name'],
  ['an unknown model', floats({}, { model_name: 'nobody' }), 'No such model', status.NOT_FOUND],
  ['an unknown version', floats({}, { model_version: '9' }), 'version', status.NOT_FOUND],
  ['no inputs', floats({}, { inputs: [], raw_input_contents: [] }), 'inputs'],
  ['an unknown input', floats({ name: 'other' }), 'inputs[0].name'],
  ['an input twice', floats({}, { inputs: Array(2).fill(floats().inputs?.[0]) }), 'inputs[1].name'],
  ['an unknown datatype', floats({ datatype: 'FLOAT' }), 'inputs[0].datatype'],
  ['another datatype', floats({ datatype: 'FP64' }), 'inputs[0].datatype'],
  ['too few axes', floats({ shape: [2] }), 'inputs[0].shape'],
  ['a negative dimension', floats({ shape: [1, -2] }), 'inputs[0].shape'],
  ['dimensions that overflow', floats({ shape: ['4294967296', '4294967296'] }), 'inputs[0].shape'],
  ['a dimension beyond 2^53', floats({ shape: [1, '9223372036854775807'] }), 'inputs[0].shape'],
  ['no items', floats({ shape: [0, 2] }), 'inputs[0].shape'],
  ['too many items', floats({ shape: [101, 2] }), 'inputs[0].shape'],
  ['fewer bytes than the shape says', floats({}, { raw_input_contents: [Buffer.alloc(7)] }), 'inputs[0]'],
  ['more bytes than the shape says', floats({}, { raw_input_contents: [Buffer.alloc(12)] }), 'inputs[0]'],
  ['raw data missing for an input', floats({}, { inputs: [...two()] }), 'raw_input_contents'],
  [
    'raw data without an input',
    floats({}, { raw_input_contents: Array(2).fill(Buffer.alloc(8)) }),
    'raw_input_contents',
  ],
  ['no data at all', typed({}), 'inputs[0]'],
  ['raw and typed data', floats({ contents: { fp32_contents: [1, 2] } }), 'inputs[0].contents'],
  [
    'typed data of another datatype',
    typed({ contents: { int_contents: [1, 2] } }),
    'inputs[0].contents has int_contents',
  ],
  ['typed data that is too short', typed({ contents: { fp32_contents: [1] } }), 'inputs[0].contents'],
  [
    'a shape that claims much',
    typed({ shape: [1, 2_000_000_000], contents: { fp32_contents: [1] } }),
    'inputs[0].contents',
  ],
  [
    'FP16 as typed data',
    typed({ name: 'fp16', datatype: 'FP16', contents: { fp32_contents: [1, 2] } }),
    'raw_input_contents',
  ],
  [
    'an element beyond its datatype',
    typed({ name: 'int8', datatype: 'INT8', contents: { int_contents: [1, 300] } }),
    'inputs[0].contents',
  ],
  [
    'a BOOL that is neither',
    floats({ name: 'bool', datatype: 'BOOL' }, { raw_input_contents: [Buffer.from([0, 2])] }),
    'inputs[0].data[1]',
  ],
  ['an empty text', texts(rawTexts([''])), 'inputs[0].data[0]'],
  ['a text that is no UTF-8', texts(Buffer.from([2, 0, 0, 0, 0xff, 0xfe])), 'inputs[0].data[0]'],
  ['a text without its length', texts(Buffer.from('ab')), 'inputs[0]'],
  ['a text that ends too soon', texts(Buffer.from([9, 0, 0, 0, 0x61])), 'inputs[0]'],
  ['bytes behind the last text', texts(Buffer.concat([rawTexts(['a']), Buffer.from([0])])), 'inputs[0]'],
  ['texts of another count', texts(rawTexts(['a', 'b'])), 'inputs[0]'],
  ['an unknown output', floats({}, { outputs: [{ name: 'other' }] }), 'outputs[0].name'],
  [
    'an output twice',
    floats({}, { outputs: [{ name: 'fp32_out' }, { name: 'fp32_out' }] }),
    'outputs[1].name',
  ],
  ['a negative timeout', parameters('timeout', { int64_param: -1 }), 'parameters.timeout'],
  ['a timeout of another type', parameters('timeout', { string_param: '1' }), 'parameters.timeout'],
  [
    'a priority that is no whole number',
    parameters('priority', { double_param: 0.5 }),
    'parameters.priority',
  ],
  ['a parameter without a value', parameters('empty', {}), 'parameters.empty'],
  ['a parameter beyond 2^53', parameters('big', { int64_param: '9223372036854775807' }), 'parameters.big'],
  ['a parameter that is no number', parameters('nan', { double_param: Number.NaN }), 'parameters.nan'],
  ['parameters that are large', parameters('long', { string_param: 'x'.repeat(5000) }), 'parameters'],
  ['a sequence', parameters('sequence_id', { int64_param: 1 }), 'sequence_id', status.UNIMPLEMENTED],
  [
    'shared memory',
    floats({ parameters: { shared_memory_region: { string_param: 'x' } } }),
    'shared_memory_region',
    status.UNIMPLEMENTED,
  ],
  [
    'a classification',
    floats({}, { outputs: [{ name: 'fp32_out', parameters: { classification: { int64_param: 3 } } }] }),
    'classification',
    status.UNIMPLEMENTED,
  ],
];

function two(): InferTensor[] {
  return ['fp32', 'int8'].map((name) => ({ name, datatype: name.toUpperCase(), shape: [1, 2] }));
}

describe('bad input at the gRPC door', () => {
  const harness = new Harness();
  const queues: string[] = [];
  let gateway: Gateway;
  let client: GrpcClient;
  let redis: Redis;

  before(async () => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    for (const model of [textModel(text), everyTypeModel(tensors)]) {
      // Announced, and not taken from: whatever is enqueued stays to be seen.
      const worker = new StandInWorker(model);
      await worker.announce();
      harness.onRelease(() => worker.stop());
      queues.push(worker.queue);
    }
    gateway = await harness.gateway({ maxBodyBytes: 100_000 });
    client = new GrpcClient(gateway.grpc?.address ?? '');
    harness.onRelease(() => client.close());
  });
  after(() => harness.release());
  afterEach('nothing was enqueued', async () => {
    for (const queue of queues) expect(await redis.get(`${BULL_PREFIX}:${queue}:id`)).to.equal(null);
  });

  for (const [what, call, names, code = status.INVALID_ARGUMENT] of FAULTS) {
    it(`is refused, naming the field: ${what}`, async () => {
      const error = await client.refusal(client.infer(call));
      expect([error.code, error.details.includes(names) || error.details]).to.deep.equal([code, true]);
      expect(error.metadata.get('x-request-id')).to.have.length(1);
    });
  }

  const path = INFERENCE.ModelInfer?.path ?? '';
  const refused = async (bytes: Buffer, method = path) => client.refusal(client.raw(method, bytes));

  it('is refused: bytes that are no message, at every method', async () => {
    for (const { path: each } of Object.values(INFERENCE)) {
      // Field 1 with a length that the message does not have.
      const bytes = Buffer.from([0x0a, 0x7f, 0x61]);
      if (/Server(Live|Ready|Metadata)|Stream/.test(each)) continue;
      expect([each, (await refused(bytes, each)).code]).to.deep.equal([each, status.INVALID_ARGUMENT]);
    }
    expect((await refused(Buffer.from([0x08]))).details).to.include('message');
    const notText = await refused(Buffer.from([0x0a, 2, 0xff, 0xfe]));
    expect(notText.code).to.equal(status.INVALID_ARGUMENT);
    expect(notText.details).to.include('model_name');
  });

  it('is refused: a message over the limit, also one that is so only inside', async () => {
    const large = floats({ shape: [1, 50_000] }, { raw_input_contents: [Buffer.alloc(200_000)] });
    const zipping = new GrpcClient(
      gateway.grpc?.address ?? '',
      {},
      { 'grpc.default_compression_algorithm': 2 },
    );
    harness.onRelease(() => zipping.close());
    for (const each of [client, zipping]) {
      const error = await each.refusal(each.infer(large));
      expect(error.code).to.equal(status.RESOURCE_EXHAUSTED);
      expect(error.details).to.include('100000 bytes');
    }
  });

  it('is refused with a status of our own where the library refuses', async () => {
    const session = connectHttp2(`http://${gateway.grpc?.address}`);
    harness.onRelease(() => session.destroy());
    const ask = (headers: Record<string, string>, body: Buffer) =>
      new Promise<[unknown, string]>((resolve) => {
        const call = session.request({
          ':method': 'POST',
          ':path': path,
          'content-type': 'application/grpc',
          te: 'trailers',
          ...headers,
        });
        call.on('error', () => undefined);
        call.on('response', (answer) => {
          resolve([Number(answer['grpc-status']), decodeURI(String(answer['grpc-message']))]);
        });
        call.end(body);
      });
    // The flag of a compressed message, and three bytes that are not.
    const compressed = Buffer.from([1, 0, 0, 0, 3, 1, 2, 3]);
    const [zipCode, zipText] = await ask({ 'grpc-encoding': 'gzip' }, compressed);
    expect([zipCode, zipText]).to.deep.equal([status.INVALID_ARGUMENT, "The message can't be decompressed."]);
    const [unknown, unknownText] = await ask({ 'grpc-encoding': 'snappy' }, compressed);
    expect(unknown).to.equal(status.UNIMPLEMENTED);
    expect(unknownText).to.include('grpc-encoding');
    const [timeout, timeoutText] = await ask({ 'grpc-timeout': 'soon' }, Buffer.alloc(5));
    expect(timeout).to.equal(status.INVALID_ARGUMENT);
    expect(timeoutText).to.include('grpc-timeout');
    const [missing, missingText] = await ask({}, Buffer.alloc(0));
    expect(missing).to.equal(status.INVALID_ARGUMENT);
    expect(missingText).to.include('missing');
  });

  it('is refused with the reason: calls that are not served', async () => {
    const service = path.replace(/ModelInfer$/, '');
    for (const [method, why] of [
      ['RepositoryModelLoad', 'loaded'],
      ['RepositoryModelUnload', 'unloaded'],
      ['SystemSharedMemoryStatus', 'shares no memory'],
      ['CudaSharedMemoryRegister', 'shares no memory'],
      ['TraceSetting', 'set when'],
      ['NoSuchCall', 'NoSuchCall'],
    ]) {
      const error = await refused(Buffer.alloc(0), service + method);
      expect([method, error.code]).to.deep.equal([method, status.UNIMPLEMENTED]);
      expect(error.details).to.include(why);
    }
  });

  it('echoes any id, and breaks no trailer with what it quotes', async () => {
    const id = '\u0000\r\n名\ud83d\ude00';
    const error = await client.refusal(
      client.infer(floats({ name: `${'x'.repeat(63)}\ud83d\ude00${id}` }, { id })),
    );
    expect(error.code).to.equal(status.INVALID_ARGUMENT);
    expect(error.details).to.include('inputs[0].name');
  });
});
