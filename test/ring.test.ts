import { existsSync } from 'node:fs';
import { MillraceApiError, MillraceClient } from '@millrace/client';
import { expect } from 'chai';
import { post, predict, until } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { askReferences, isRight } from './support/load.js';
import {
  cosine,
  distance,
  INT8_TOLERANCE,
  KNOWN_COSINES,
  MINILM,
  sampleSentences,
} from './support/minilm.js';

interface InferAnswer {
  id?: string;
  model_name: string;
  outputs: { name: string; datatype: string; shape: number[]; data: number[] }[];
}

async function infer(url: string, texts: string[], shape = [texts.length]): Promise<InferAnswer> {
  const inputs = [{ name: 'text', datatype: 'BYTES', shape, data: texts }];
  const response = await post(`${url}/v2/models/${MINILM}/infer`, { id: 'mine', inputs });
  expect(response.status, await response.clone().text()).to.equal(200);
  return (await response.json()) as InferAnswer;
}

async function metric(url: string, name: string, labels: string[]): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const rows = text.split('\n').filter((row) => row.startsWith(`${name}{`) || row.startsWith(`${name} `));
  const matching = rows.filter((row) => labels.every((label) => row.includes(label)));
  return matching.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(' '))), 0);
}

describe('the ring: a sentence in over HTTP, its embedding out', () => {
  let cluster: Cluster;
  before(async () => {
    // As where nobody has set it: the servers must do so themselves.
    const env = { ORT_DISABLE_TELEMETRY: '' };
    cluster = await Cluster.start({ models: [MINILM, 'identity'], workers: 2, env });
  });
  after(() => cluster.stop());

  it('lets onnxruntime report nothing to its makers', () => {
    // The file that its reporting opens first.
    for (const { pid } of cluster.workers) expect(existsSync(`/tmp/mat-debug-${pid}.log`)).to.equal(false);
  });

  it('gives the known cosines through the native door', async () => {
    for (const { a, b, cosine: known } of KNOWN_COSINES) {
      const { outputs } = await predict(cluster.url, MINILM, [a, b]);
      expect(cosine(outputs[0] ?? [], outputs[1] ?? []), `${a} / ${b}`).to.be.closeTo(known, INT8_TOLERANCE);
    }
  });

  it('gives the known cosines through the Open Inference door', async () => {
    for (const { a, b, cosine: known } of KNOWN_COSINES) {
      const { id, outputs } = await infer(cluster.url, [a, b], [2, 1]);
      expect(id).to.equal('mine');
      expect(outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape }))).to.deep.equal([
        { name: 'embedding', datatype: 'FP32', shape: [2, 384] },
      ]);
      const data = outputs[0]?.data ?? [];
      expect(cosine(data.slice(0, 384), data.slice(384))).to.be.closeTo(known, INT8_TOLERANCE);
    }
  });

  it('gives the same answer through both doors', async () => {
    const text = 'The lighthouse keeper counted the ships.';
    const native = await predict(cluster.url, MINILM, text);
    const open = await infer(cluster.url, [text]);
    expect(distance(native.outputs[0] ?? [], open.outputs[0]?.data ?? [])).to.be.below(1e-6);
  });

  it('answers one text or a list with a list, with id, version and timings', async () => {
    const one = await predict(cluster.url, MINILM, 'one');
    expect(one.outputs).to.have.length(1);
    expect(one.outputs[0]).to.have.length(384);
    expect(one).to.include({ model: MINILM, version: '1' });
    expect(one.id).to.match(/^[0-9a-f-]{36}$/);
    expect(one.timings).to.include.keys('queue', 'preprocess', 'infer', 'total');
    expect(cosine(one.outputs[0] ?? [], one.outputs[0] ?? [])).to.be.closeTo(1, 1e-6);
  });

  it('gives 300 concurrent requests each its own answer', async () => {
    const sentences = (await sampleSentences()).slice(0, 100);
    const references = await askReferences(cluster.url, MINILM, sentences);
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) => predict(cluster.url, MINILM, sentences[i % sentences.length])),
    );
    const wrong = answers.filter(
      ({ outputs }, i) => !isRight(references, i % sentences.length, outputs[0] ?? []),
    );
    expect(wrong).to.deep.equal([]);
    expect(new Set(answers.map(({ id }) => id)).size).to.equal(300);
  });

  it('answers a list of 100 in order, spread over several jobs', async () => {
    const sentences = (await sampleSentences()).slice(0, 100);
    const references = await askReferences(cluster.url, MINILM, sentences);
    const { outputs } = await predict(cluster.url, MINILM, sentences);
    expect(outputs).to.have.length(100);
    expect(outputs.every((output, i) => isRight(references, i, output))).to.equal(true);
  });

  it('shares the work between two workers', async () => {
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => predict(cluster.url, MINILM, `Sentence number ${i} of many.`)),
    );
    for (const worker of cluster.workers) {
      expect(await metric(worker.url, 'millrace_worker_items_total', [MINILM, 'ok'])).to.be.above(0);
    }
  });

  it('gives a text the same answer alone and among any mates, through the whole path', async () => {
    const [text = '', ...others] = await sampleSentences();
    const alone = (await predict(cluster.url, MINILM, text)).outputs[0] ?? [];
    for (const mates of [others.slice(0, 31), others.slice(40, 71), [`${text} `.repeat(30)]]) {
      const answers = await Promise.all([
        predict(cluster.url, MINILM, [text, ...mates]),
        ...mates.map((mate) => predict(cluster.url, MINILM, mate)),
      ]);
      expect(distance(alone, answers[0]?.outputs[0] ?? [])).to.be.below(1e-4);
    }
  });

  it('returns tensors of every datatype of the identity model bit by bit', async () => {
    const inputs = [
      {
        name: 'fp32',
        datatype: 'FP32',
        shape: [2, 2],
        data: [
          [0.1, -1e-30],
          [3.4e38, 0],
        ],
      },
      { name: 'int64', datatype: 'INT64', shape: [2, 1], data: [9007199254740991, -5] },
      { name: 'bool', datatype: 'BOOL', shape: [2, 1], data: [true, false] },
      { name: 'uint8', datatype: 'UINT8', shape: [2, 3], data: [0, 1, 255, 4, 5, 6] },
      { name: 'bytes', datatype: 'BYTES', shape: [2, 1], data: ['', 'жаба 🐸'] },
    ];
    const response = await post(`${cluster.url}/v2/models/identity/infer`, { inputs });
    const { outputs } = (await response.json()) as InferAnswer;
    const byName = Object.fromEntries(outputs.map((output) => [output.name, output.data]));
    expect(byName).to.deep.equal({
      fp32_out: [Math.fround(0.1), Math.fround(-1e-30), Math.fround(3.4e38), 0],
      int64_out: [9007199254740991, -5],
      bool_out: [true, false],
      uint8_out: [0, 1, 255, 4, 5, 6],
      bytes_out: ['', 'жаба 🐸'],
    });
  });

  it('leaves out the outputs of inputs that were left out', async () => {
    const { outputs } = await predict(cluster.url, 'identity', [{ fp32: [1, 2.5] }, { fp32: [3, 4] }]);
    expect(outputs).to.deep.equal([{ fp32_out: [1, 2.5] }, { fp32_out: [3, 4] }]);
  });

  it('says when a text was cut, and answers what is left of it', async () => {
    const long = 'all work and no play makes a long text '.repeat(200);
    const answer = await predict(cluster.url, MINILM, ['short', long]);
    expect(answer.truncated).to.deep.equal([1]);
    expect(answer.outputs[1]).to.have.length(384);
  });

  it('keeps NUL in a text, and ignores __proto__', async () => {
    const { outputs } = await predict(cluster.url, MINILM, ['a\u0000b', 'ab', 'x']);
    expect(outputs).to.have.length(3);
    const body = '{"__proto__": {"partial": true}, "inputs": "fine"}';
    const response = await post(`${cluster.url}/v1/models/${MINILM}/predict`, body);
    expect(response.status).to.equal(200);
  });

  it('lists models, their signatures and readiness', async () => {
    const client = new MillraceClient({ baseUrl: cluster.url });
    expect((await client.models()).map(({ id }) => id).sort()).to.deep.equal([MINILM, 'identity']);
    expect(await client.ready()).to.equal(true);
    const metadata = await (await fetch(`${cluster.url}/v2/models/${MINILM}`)).json();
    expect(metadata).to.deep.include({ name: MINILM, platform: 'onnxruntime_onnx', versions: ['1'] });
    for (const path of ['/v2', '/v2/health/live', '/v2/health/ready', `/v2/models/${MINILM}/ready`]) {
      expect((await fetch(cluster.url + path)).status, path).to.equal(200);
    }
  });

  it('names in its metrics what a person running this needs', async () => {
    await predict(cluster.url, MINILM, 'counted');
    const requests = await metric(cluster.url, 'millrace_requests_total', [MINILM, 'native', '200']);
    expect(requests).to.be.above(0);
    const gateway = await (await fetch(`${cluster.url}/metrics`)).text();
    const names = [
      'queue_jobs',
      'queue_oldest_seconds',
      'stage_duration_seconds',
      'request_duration_seconds',
    ];
    for (const name of names) expect(gateway, name).to.contain(`millrace_${name}`);
    expect(
      await metric(cluster.workers[0]?.url ?? '', 'millrace_worker_batch_items_count', [MINILM]),
    ).to.be.above(0);
  });

  it('takes back the work of a client that went away', async () => {
    const gone = await metric(cluster.url, 'millrace_clients_gone_total', [MINILM]);
    const abort = new AbortController();
    const list = Array.from({ length: 2000 }, (_, i) => `A sentence that nobody waits for, number ${i}.`);
    const answer = predict(cluster.url, MINILM, list, { signal: abort.signal });
    await until(async () => (await metric(cluster.url, 'millrace_gateway_waiting_requests', [])) > 0);
    abort.abort();
    expect(await answer.catch((error: Error) => error.name)).to.equal('AbortError');
    await until(async () => (await metric(cluster.url, 'millrace_clients_gone_total', [MINILM])) > gone);
    await until(async () => (await metric(cluster.url, 'millrace_queue_jobs', [MINILM, 'waiting'])) === 0);
    const cancelled = await Promise.all(
      cluster.workers.map(({ url }) => metric(url, 'millrace_worker_items_total', [MINILM, 'ok'])),
    );
    expect(cancelled.reduce((sum, n) => sum + n, 0)).to.be.above(0);
  });

  it('answers 504 with the request id when the wait is over, and takes the work back', async () => {
    // Behind others it would be refused: only what has nobody ahead is tried whatever is predicted.
    await until(async () => (await metric(cluster.url, 'millrace_queue_jobs', [MINILM])) === 0);
    const list = Array.from(
      { length: 2000 },
      (_, i) => `A sentence for which there is no time, number ${i}.`,
    );
    const error = await predict(cluster.url, MINILM, list, { waitMs: 50 }).catch((error: unknown) => error);
    expect(error).to.be.instanceOf(MillraceApiError);
    expect(error).to.include({ status: 504, code: 'deadline_exceeded' });
    expect(error)
      .to.have.property('requestId')
      .that.matches(/^[0-9a-f-]{36}$/);
    const after = await predict(cluster.url, MINILM, 'served again');
    expect(after.outputs).to.have.length(1);
  });
});
