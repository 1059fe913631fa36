import { BULL_PREFIX, connectRedis, queueName } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { post, predict } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { MINILM } from './support/minilm.js';

interface Fault {
  what: string;
  status: number;
  /** What the answer must say, so that a person finds the fault. */
  says: RegExp;
  path?: string;
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
}

const NATIVE = `/v1/models/${MINILM}/predict`;
const OPEN = `/v2/models/${MINILM}/infer`;
const IDENTITY = '/v2/models/identity/infer';

const text = (tensor: object): string =>
  JSON.stringify({ inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'], ...tensor }] });
const floats = (tensor: object): string =>
  JSON.stringify({ inputs: [{ name: 'fp32', datatype: 'FP32', shape: [1, 2], data: [1, 2], ...tensor }] });

const FAULTS: Fault[] = [
  { what: 'malformed JSON', status: 400, says: /JSON/, body: '{"inputs": "a"' },
  { what: 'an empty body', status: 400, says: /JSON|body/i, body: '' },
  { what: 'invalid UTF-8', status: 400, says: /UTF-8/, body: Uint8Array.of(0x22, 0xff, 0xfe, 0x22) },
  {
    what: 'UTF-16',
    status: 400,
    says: /UTF-8/,
    body: new Uint8Array(Buffer.from('\ufeff{"inputs":"a"}', 'utf16le')),
  },
  {
    what: 'a charset other than UTF-8',
    status: 415,
    says: /utf-8/i,
    body: '{"inputs":"a"}',
    headers: { 'Content-Type': 'application/json; charset=utf-16' },
  },
  { what: 'a lone surrogate', status: 400, says: /inputs\[1\]/, body: '{"inputs":["fine","\\ud800"]}' },
  {
    what: 'deep nesting',
    status: 400,
    says: /nest|deep/i,
    body: `{"inputs":${'['.repeat(5000)}${']'.repeat(5000)}}`,
  },
  {
    what: 'a wrong content type',
    status: 415,
    says: /application\/json/,
    headers: { 'Content-Type': 'text/plain' },
  },
  {
    what: 'a body over the limit',
    status: 413,
    says: /large|bytes/i,
    body: `{"inputs":"${'x'.repeat(300_000)}"}`,
  },
  { what: 'an unknown model', status: 404, says: new RegExp(MINILM), path: '/v1/models/nope/predict' },
  {
    what: 'an unknown version',
    status: 404,
    says: /version/i,
    path: `/v1/models/${MINILM}/versions/99/predict`,
  },
  { what: 'missing inputs', status: 400, says: /inputs/, body: '{}' },
  { what: 'empty inputs', status: 400, says: /inputs/, body: '{"inputs":[]}' },
  { what: 'null inputs', status: 400, says: /inputs/, body: '{"inputs":null}' },
  {
    what: 'a wrong type in the middle of a list',
    status: 400,
    says: /inputs\[2\]/,
    body: '{"inputs":["a","b",3,"d"]}',
  },
  {
    what: 'more items than the limit',
    status: 400,
    says: /2048/,
    body: JSON.stringify({ inputs: Array(2049).fill('a') }),
  },
  { what: 'a body that is a list', status: 400, says: /object/, body: '["a"]' },
  { what: 'a wait that is no number', status: 400, says: /waitMs/, body: '{"inputs":"a","waitMs":"soon"}' },
  {
    what: 'tensors where an object of inputs is wanted',
    status: 400,
    says: /inputs/,
    path: '/v1/models/identity/predict',
    body: '{"inputs":"text"}',
  },
  {
    what: 'items of different shapes',
    status: 400,
    says: /inputs\[1\]/,
    path: '/v1/models/identity/predict',
    body: '{"inputs":[{"fp32":[1,2]},{"fp32":[1]}]}',
  },
  { what: 'malformed JSON (open)', status: 400, says: /JSON/, path: OPEN, body: '{' },
  {
    what: 'an unknown model (open)',
    status: 404,
    says: /identity/,
    path: '/v2/models/nope/infer',
    body: text({}),
  },
  { what: 'no inputs (open)', status: 400, says: /inputs/, path: OPEN, body: '{"inputs":[]}' },
  {
    what: 'more data than the shape says',
    status: 400,
    says: /shape/,
    path: OPEN,
    body: text({ data: ['a', 'b'] }),
  },
  {
    what: 'less data than the shape says',
    status: 400,
    says: /shape/,
    path: OPEN,
    body: text({ shape: [3] }),
  },
  { what: 'a negative shape', status: 400, says: /shape/, path: OPEN, body: text({ shape: [-1] }) },
  { what: 'a shape that is no number', status: 400, says: /shape/, path: OPEN, body: text({ shape: ['1'] }) },
  {
    what: 'an overflowing shape',
    status: 400,
    says: /shape/,
    path: IDENTITY,
    body: floats({ shape: [2 ** 40, 2 ** 40] }),
  },
  {
    what: 'a wrong datatype',
    status: 400,
    says: /datatype|FP32|BYTES/,
    path: OPEN,
    body: text({ datatype: 'FP32', data: [1] }),
  },
  {
    what: 'an unknown datatype',
    status: 400,
    says: /datatype/,
    path: OPEN,
    body: text({ datatype: 'TEXT' }),
  },
  { what: 'an unknown tensor name', status: 400, says: /words/, path: OPEN, body: text({ name: 'words' }) },
  {
    what: 'a repeated tensor name',
    status: 400,
    says: /text/,
    path: OPEN,
    body: JSON.stringify({
      inputs: Array(2).fill({ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }),
    }),
  },
  {
    what: 'a wrong element type',
    status: 400,
    says: /data|fp32/,
    path: IDENTITY,
    body: floats({ data: [1, 'two'] }),
  },
  {
    what: 'ragged nested data',
    status: 400,
    says: /data|shape/,
    path: IDENTITY,
    body: floats({ shape: [2, 2], data: [[1, 2], [3]] }),
  },
  {
    what: 'a number out of range',
    status: 400,
    says: /uint8|UINT8|data/,
    path: IDENTITY,
    body: JSON.stringify({ inputs: [{ name: 'uint8', datatype: 'UINT8', shape: [1, 1], data: [256] }] }),
  },
  {
    what: 'an unknown output',
    status: 400,
    says: /nope/,
    path: OPEN,
    body: JSON.stringify({
      inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }],
      outputs: [{ name: 'nope' }],
    }),
  },
];

describe('bad input', () => {
  let cluster: Cluster;
  let redis: Redis;
  let queues: Queue[];

  before(async () => {
    cluster = await Cluster.start({
      models: [MINILM, 'identity'],
      env: { MILLRACE_MAX_BODY_BYTES: '262144' },
    });
    redis = connectRedis(cluster.redis.url, 'worker', 'test');
    queues = [MINILM, 'identity'].map(
      (m) => new Queue(queueName(m, '1'), { connection: redis, prefix: BULL_PREFIX }),
    );
  });
  after(async () => {
    await Promise.all(queues.map((queue) => queue.close()));
    redis.disconnect();
    await cluster.stop();
  });

  /** Jobs of both queues in any state. */
  async function jobs(): Promise<number> {
    const counts = await Promise.all(queues.map((queue) => queue.getJobCounts()));
    return counts.flatMap((count) => Object.values(count)).reduce((sum, n) => sum + n, 0);
  }

  for (const { what, status, says, path = NATIVE, body = '{"inputs":"a"}', headers = {} } of FAULTS) {
    it(`is refused at the door: ${what}`, async () => {
      const before = await jobs();
      const response = await fetch(cluster.url + path, {
        method: 'POST',
        body,
        headers: { 'Content-Type': 'application/json', ...headers },
      });
      const answer = await response.text();
      expect(response.status, answer).to.equal(status);
      const parsed = JSON.parse(answer) as { error?: string; detail?: string; code?: string };
      if (path.startsWith('/v2')) expect(parsed.error).to.be.a('string').that.matches(says);
      else {
        expect(response.headers.get('content-type')).to.contain('application/problem+json');
        expect(parsed.code).to.be.a('string');
        expect(answer).to.match(says);
      }
      expect(answer).not.to.match(/node_modules|\bat .*\.js:/);
      expect(await jobs(), 'nothing may be enqueued').to.equal(before);
    });
  }

  it('of one item fails that item alone, and names every failed index', async () => {
    const inputs = [
      { bytes: ['fine'] },
      { bytes: ['a\u0000b'] },
      { bytes: ['also fine'] },
      { bytes: ['\u0000'] },
    ];
    const response = await post(`${cluster.url}/v1/models/identity/predict`, { inputs });
    expect(response.status).to.equal(400);
    const problem = (await response.json()) as { errors: { index: number }[] };
    expect(problem.errors.map(({ index }) => index)).to.deep.equal([1, 3]);
    const partial = await predict(cluster.url, 'identity', inputs, { partial: true });
    expect(partial.outputs).to.deep.equal([
      { bytes_out: ['fine'] },
      null,
      { bytes_out: ['also fine'] },
      null,
    ]);
    expect(partial.errors.map(({ index, code }) => ({ index, code }))).to.deep.equal([
      { index: 1, code: 'invalid_input' },
      { index: 3, code: 'invalid_input' },
    ]);
  });

  it('harms no request that runs beside it', async () => {
    const good = Array.from({ length: 50 }, (_, i) => predict(cluster.url, 'identity', { fp32: [i] }));
    const bad = Array.from({ length: 50 }, () =>
      post(`${cluster.url}/v1/models/identity/predict`, { inputs: { bytes: ['\u0000'] } }),
    );
    const outputs = (await Promise.all(good)).map((answer) => answer.outputs[0]);
    expect(outputs).to.deep.equal(Array.from({ length: 50 }, (_, i) => ({ fp32_out: [i] })));
    expect((await Promise.all(bad)).map(({ status }) => status)).to.deep.equal(Array(50).fill(400));
  });
});
