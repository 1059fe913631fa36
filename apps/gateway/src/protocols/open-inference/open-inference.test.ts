import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { DIMENSIONS, identityModel, textModel } from '../../test-support/models.js';
import { uniqueName } from '../../test-support/redis.js';
import { embeddingOf } from '../../test-support/stand-in-worker.js';

interface Inference {
  model_name: string;
  model_version: string;
  id?: string;
  outputs: { name: string; shape: number[]; datatype: string; data: unknown[] }[];
  error?: string;
}

describe('the Open Inference door', () => {
  const harness = new Harness();
  const text = uniqueName('text');
  const identity = uniqueName('identity');
  let gateway: Gateway;
  const infer = (model: string, body: unknown) =>
    post<Inference>(`${gateway.url}/v2/models/${model}/infer`, body);
  const texts = (shape: number[], data: unknown) => ({
    inputs: [{ name: 'text', shape, datatype: 'BYTES', data }],
  });

  before(async () => {
    await harness.worker(textModel(text), {
      verdict: (item) =>
        item === 'bad' ? { status: 'failed', code: 'text_too_long', message: 'Too long.' } : { status: 'ok' },
    });
    await harness.worker(identityModel(identity));
    gateway = await harness.gateway({ models: [text, identity], maxJobItems: 3 });
  });
  after(() => harness.release());

  it('embeds texts of shape [N] and [N,1], flat or nested, in order', async () => {
    const data = Array.from({ length: 7 }, (_, i) => `sentence ${i}`);
    for (const body of [
      texts([7], data),
      texts([7, 1], data),
      texts(
        [7, 1],
        data.map((d) => [d]),
      ),
    ]) {
      const answer = await infer(text, body);
      expect(answer.status).to.equal(200);
      const [output] = answer.body.outputs;
      expect(output).to.include({ name: 'embedding', datatype: 'FP32' });
      expect(output?.shape).to.deep.equal([7, DIMENSIONS]);
      for (const [i, input] of data.entries()) {
        expect(output?.data[i * DIMENSIONS + 1]).to.be.closeTo(embeddingOf(input)[1] ?? 0, 1e-6);
      }
    }
  });

  it('echoes the id, and has its own', async () => {
    const { body, headers } = await infer(text, { ...texts([1], ['a']), id: 'mine' });
    expect(body).to.include({ id: 'mine', model_name: text, model_version: '1' });
    expect(headers.get('x-request-id')).not.to.equal('mine');
    expect(headers.get('server-timing')).to.include('infer;dur=');
    expect((await infer(text, texts([1], ['a']))).body).not.to.have.property('id');
  });

  it('returns the outputs asked for, in their order', async () => {
    const inputs = [
      {
        name: 'fp32',
        shape: [2, 2],
        datatype: 'FP32',
        data: [
          [1.5, 2],
          [3, 0.1],
        ],
      },
      { name: 'int64', shape: [2, 1], datatype: 'INT64', data: [-9007199254740991, 7] },
      { name: 'bool', shape: [2, 1], datatype: 'BOOL', data: [true, false] },
      { name: 'bytes', shape: [2, 1], datatype: 'BYTES', data: ['é', ''] },
    ];
    const all = await infer(identity, { inputs });
    expect(all.body.outputs.map((o) => o.name)).to.deep.equal([
      'fp32_out',
      'int64_out',
      'bool_out',
      'bytes_out',
    ]);
    const some = await infer(identity, { inputs, outputs: [{ name: 'bytes_out' }, { name: 'fp32_out' }] });
    expect(some.body.outputs).to.deep.equal([
      { name: 'bytes_out', shape: [2, 1], datatype: 'BYTES', data: ['é', ''] },
      { name: 'fp32_out', shape: [2, 2], datatype: 'FP32', data: [1.5, 2, 3, Math.fround(0.1)] },
    ]);
  });

  it('is all or nothing', async () => {
    const { status, body } = await infer(text, texts([3], ['a', 'bad', 'c']));
    expect(status).to.equal(400);
    expect(body.error).to.include('inputs[1]');
  });

  it('describes the server and its models', async () => {
    expect((await get(`${gateway.url}/v2`)).body).to.include({ name: 'millrace' });
    const { body } = await get(`${gateway.url}/v2/models/${text}`);
    expect(body).to.deep.equal({
      name: text,
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }],
      outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, DIMENSIONS] }],
    });
    expect((await get(`${gateway.url}/v2/models/${text}/versions/1/ready`)).status).to.equal(200);
    expect((await get(`${gateway.url}/v2/models/nope`)).status).to.equal(404);
    expect((await get(`${gateway.url}/v2/health/live`)).status).to.equal(200);
    expect((await get(`${gateway.url}/v2/health/ready`)).body).to.deep.equal({ ready: true });
  });

  it('lists models in the shape of the OpenAI list', async () => {
    const { body } = await get<{ object: string; data: Record<string, unknown>[] }>(
      `${gateway.url}/v1/models`,
    );
    expect(body.object).to.equal('list');
    const entry = body.data.find((model) => model.id === text);
    expect(entry).to.include({ object: 'model', version: '1', task: 'text-embedding', ready: true });
    expect(entry).to.have.property('limits').deep.equal({ maxRequestItems: 100, maxTokens: 256 });
  });
});
