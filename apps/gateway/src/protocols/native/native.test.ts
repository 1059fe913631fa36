import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { Harness, post } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { uniqueName } from '../../test-support/redis.js';
import { embeddingOf } from '../../test-support/stand-in-worker.js';

interface Prediction {
  id: string;
  model: string;
  version: string;
  outputs: unknown[];
  truncated?: number[];
  errors?: { index: number; code: string; message: string }[];
  timings: Record<string, number>;
}

describe('the native door', () => {
  const harness = new Harness();
  const text = uniqueName('text');
  const identity = uniqueName('identity');
  let gateway: Gateway;
  const predict = (model: string, body: unknown, headers?: Record<string, string>) =>
    post<Prediction>(`${gateway.url}/v1/models/${model}/predict`, body, headers);

  before(async () => {
    await harness.worker(textModel(text), {
      verdict: (item) => {
        if (item.startsWith('bad')) return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        if (item.startsWith('cut')) return { status: 'ok', truncated: true, tokens: 9 };
        return { status: 'ok', tokens: 3 };
      },
    });
    await harness.worker(identityModel(identity));
    gateway = await harness.gateway({ maxJobItems: 4 });
  });
  after(() => harness.release());

  it('answers one text with one output', async () => {
    const { status, body, headers } = await predict(text, { inputs: 'hello' });
    expect(status).to.equal(200);
    expect(body).to.include({ model: text, version: '1' });
    expect(body.outputs).to.have.length(1);
    const [output] = body.outputs as number[][];
    for (const [i, value] of embeddingOf('hello').entries()) expect(output?.[i]).to.be.closeTo(value, 1e-6);
    expect(headers.get('x-request-id')).to.equal(body.id);
    expect(headers.get('server-timing')).to.match(/admit;dur=.*queue;dur=.*total;dur=/);
    expect(body.timings).to.include.keys('admit', 'queue', 'infer', 'total');
    expect(headers.get('x-powered-by')).to.equal(null);
    expect(headers.get('x-content-type-options')).to.equal('nosniff');
  });

  it('answers a list in order over several jobs', async () => {
    const inputs = Array.from({ length: 30 }, (_, i) => `sentence number ${i}`);
    const { body } = await predict(text, { inputs });
    expect(body.outputs).to.have.length(30);
    for (const [i, output] of (body.outputs as number[][]).entries()) {
      expect(output[1]).to.be.closeTo(embeddingOf(inputs[i] ?? '')[1] ?? 0, 1e-6);
    }
  });

  it('carries texts that are too large for the job, NULs included', async () => {
    const inputs = ['x'.repeat(20_000), 'a\u0000b'];
    const { body } = await predict(text, { inputs });
    const outputs = body.outputs as number[][];
    expect(outputs[0]?.[0]).to.be.closeTo(20_000 / 1024, 1e-4);
    expect(outputs[1]?.[1]).to.be.closeTo(embeddingOf('a\u0000b')[1] ?? 0, 1e-6);
  });

  it('names the texts that were cut', async () => {
    const { body } = await predict(text, { inputs: ['a', 'cut 1', 'b', 'c', 'd', 'cut 2'] });
    expect(body.truncated).to.deep.equal([1, 5]);
  });

  it('fails the request when an item fails, naming every one', async () => {
    const { status, body, headers } = await predict(text, { inputs: ['a', 'bad 1', 'b', 'c', 'd', 'bad 2'] });
    expect(status).to.equal(400);
    expect(headers.get('content-type')).to.include('application/problem+json');
    expect(body).to.include({ code: 'text_too_long', index: 1, field: 'inputs[1]' });
    expect(body.errors?.map((e) => e.index)).to.deep.equal([1, 5]);
  });

  it('answers the other items when asked for a partial answer', async () => {
    const inputs = ['a', 'bad 1', 'c', 'd', 'bad 2', 'f'];
    const { status, body } = await predict(text, { inputs, partial: true });
    expect(status).to.equal(200);
    for (const [i, input] of inputs.entries()) {
      const output = body.outputs[i] as number[] | null;
      if (input.startsWith('bad')) expect(output).to.equal(null);
      else expect(output?.[1]).to.be.closeTo(embeddingOf(input)[1] ?? 0, 1e-6);
    }
    expect(body.errors).to.deep.equal([
      { index: 1, code: 'text_too_long', message: 'Too long.' },
      { index: 4, code: 'text_too_long', message: 'Too long.' },
    ]);
  });

  it('returns tensors of several datatypes exactly', async () => {
    const item = {
      fp32: [0.1, -2.5, 3e-20],
      fp64: [Math.PI],
      int64: [Number.MAX_SAFE_INTEGER, -3],
      int8: [-128],
      bool: [true, false],
      bytes: ['é', '', 'a\u0000'],
    };
    const { status, body } = await predict(identity, { inputs: [item, { ...item, int8: [5] }] });
    expect(status).to.equal(200);
    expect(body.outputs[0]).to.deep.equal({
      fp32_out: [0.1, -2.5, 3e-20].map(Math.fround),
      fp64_out: [Math.PI],
      int64_out: [Number.MAX_SAFE_INTEGER, -3],
      int8_out: [-128],
      bool_out: [true, false],
      bytes_out: ['é', '', 'a\u0000'],
    });
    expect(body.outputs[1]).to.have.property('int8_out').deep.equal([5]);
  });

  it('refuses a field it does not know, naming those it does, and ignores __proto__', async () => {
    const misspelt = await predict(text, '{"inputs":["fine"],"parital":true}');
    expect(misspelt.status).to.equal(400);
    expect(misspelt.body).to.deep.include({ code: 'invalid_input', field: 'parital' });
    expect(misspelt.body).to.have.property('detail').that.contains('partial');
    const { status, body } = await predict(text, '{"__proto__":{"partial":true},"inputs":["bad"]}');
    expect(status).to.equal(400);
    expect(body).to.have.property('code', 'text_too_long');
  });

  it('takes a version in the path', async () => {
    const url = `${gateway.url}/v1/models/${text}/versions/1/predict`;
    expect((await post(url, { inputs: 'a' })).status).to.equal(200);
  });
});
