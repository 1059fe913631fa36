import type { ModelDescription } from '@millrace/shared';
import { expect } from 'chai';
import { makeApiKey } from '../../admission/api-keys.js';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { uniqueName } from '../../test-support/redis.js';
import { embeddingOf, type StandInWorker } from '../../test-support/stand-in-worker.js';

interface TeiError {
  error: string;
  error_type: string;
}

const TEXT: ModelDescription['text'] = {
  overflow: 'refuse',
  normalized: false,
  pooling: 'cls',
  precision: 'fp32',
  maxBatchItems: 16,
  maxBatchTokens: 1024,
  tokenizerThreads: 2,
};
const OPERATIONS = ['embed-tokens', 'tokenize', 'detokenize'] as const;

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);
const scaled = (vector: readonly number[]): number[] =>
  vector.map((value) => value / Math.sqrt(dot(vector, vector)));

describe("text-embeddings-inference's door", () => {
  const harness = new Harness();
  const identity = uniqueName('identity');
  const text = uniqueName('text');
  /** Scales its vectors itself, may cut them, and knows no operations. */
  const plain = uniqueName('plain');
  let gateway: Gateway;
  let worker: StandInWorker;
  const embed = <Body = number[][]>(body: object, path = '/embed') => post<Body>(gateway.url + path, body);
  const refusal = async (path: string, body: object): Promise<TeiError & { status: number }> => {
    const { status, headers, body: error } = await post<TeiError>(gateway.url + path, body);
    expect(headers.get('content-type')).to.equal('application/json');
    expect(Object.keys(error)).to.deep.equal(['error', 'error_type']);
    return { status, ...error };
  };
  const near = (vector: number[] | undefined, expected: readonly number[]): void => {
    expect(vector).to.have.length(expected.length);
    for (const [i, value] of expected.entries()) expect(vector?.[i]).to.be.closeTo(value, 1e-6);
  };

  before(async () => {
    worker = await harness.worker(textModel(text, { text: TEXT, operations: OPERATIONS }), {
      verdict: (item) => {
        if (item.startsWith('bad')) return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        if (item.startsWith('broken')) return { status: 'failed', code: 'inference_failed', message: 'No.' };
        if (item === '\u0063\u0000\u0000\u0000')
          return { status: 'failed', code: 'invalid_input', message: 'The vocabulary has no 99.' };
        return { status: 'ok', tokens: 3 };
      },
    });
    await harness.worker(identityModel(identity));
    await harness.worker(textModel(plain, { text: { ...TEXT, normalized: true }, minDimensions: 2 }));
    gateway = await harness.gateway({ models: [identity, text], maxJobItems: 4 });
  });
  after(() => harness.release());

  it('answers one text, and a list in order over several jobs, with vectors of length 1', async () => {
    const one = await embed({ inputs: 'hello' });
    expect(one.status).to.equal(200);
    expect(one.body).to.have.length(1);
    near(one.body[0], scaled(embeddingOf('hello')));
    expect(one.headers.get('x-compute-tokens')).to.equal('3');
    const inputs = Array.from({ length: 30 }, (_, i) => `sentence number ${i}`);
    const list = await embed({ inputs, truncate: null, normalize: true, prompt_name: null, unknown: 1 });
    expect(list.body).to.have.length(30);
    for (const [i, vector] of list.body.entries()) near(vector, scaled(embeddingOf(inputs[i] ?? '')));
  });

  it('answers at the root, for the first text-embedding model, and for any by its name', async () => {
    const expected = (await embed({ inputs: ['a'] })).body;
    for (const path of [
      '/',
      `/models/${text}`,
      `/models/${text}/embed`,
      `/models/${text}/versions/1/embed`,
    ]) {
      expect((await embed({ inputs: ['a'] }, path)).body, path).to.deep.equal(expected);
    }
    near((await embed({ inputs: 'a' }, `/models/${plain}/embed`)).body[0], embeddingOf('a'));
    const chosen = await harness.gateway({ models: [text, plain], teiModel: plain });
    near((await post<number[][]>(`${chosen.url}/`, { inputs: 'a' })).body[0], embeddingOf('a'));
  });

  it('gives vectors as the model makes them when asked not to scale, where that can be had', async () => {
    near((await embed({ inputs: 'a', normalize: false })).body[0], embeddingOf('a'));
    const refused = await refusal(`/models/${plain}/embed`, { inputs: 'a', normalize: false });
    expect(refused).to.deep.include({ status: 413, error_type: 'Validation' });
    expect(refused.error).to.match(/^normalize must be true/);
  });

  it('cuts vectors where the model allows it, and scales them again', async () => {
    const cut = await embed({ inputs: 'a', dimensions: 3 }, `/models/${plain}/embed`);
    near(cut.body[0], scaled(embeddingOf('a').slice(0, 3)));
    expect((await refusal(`/models/${plain}/embed`, { inputs: 'a', dimensions: 1 })).error).to.match(
      /^dimensions must be from 2 to 4/,
    );
    expect((await refusal('/embed', { inputs: 'a', dimensions: 3 })).error).to.match(/^dimensions must be 4/);
    expect((await embed({ inputs: 'a', dimensions: 4 })).status).to.equal(200);
  });

  it('takes token ids in place of texts', async () => {
    near((await embed({ inputs: [7, 8], normalize: false })).body[0], embeddingOf('7 8'));
    const { body } = await embed({ inputs: [[7, 8], [9]], normalize: false });
    near(body[1], embeddingOf('9'));
    expect(worker.answered.at(-1)?.operation).to.equal('embed-tokens');
    expect((await refusal('/embed', { inputs: [[7], 'a'] })).error).to.match(/^inputs\[1\] must be a list/);
    expect((await refusal('/embed', { inputs: [7, -1] })).error).to.match(/^inputs\[1\] must be a whole/);
    const none = await refusal(`/models/${plain}/embed`, { inputs: [7] });
    expect(none).to.deep.include({ status: 501, error_type: 'Backend' });
  });

  it('tells the worker whether to cut long texts', async () => {
    for (const truncate of [true, false]) {
      await embed({ inputs: 'a', truncate });
      expect(worker.answered.at(-1)?.parameters).to.deep.equal({ truncate });
    }
    await embed({ inputs: 'a', truncation_direction: 'Right' });
    expect(worker.answered.at(-1)?.parameters).to.deep.equal({});
    await embed({ inputs: 'a', truncate: false, truncation_direction: 'left' });
    expect(worker.answered.at(-1)?.parameters).to.deep.equal({ truncate: false });
  });

  it('compares a sentence with others, at the root too', async () => {
    const inputs = { source_sentence: 'one', sentences: ['two', 'one', 'three'] };
    for (const path of ['/similarity', '/', `/models/${text}`]) {
      const { status, body } = await embed<number[]>({ inputs, parameters: { truncate: true } }, path);
      expect(status).to.equal(200);
      near(
        body,
        inputs.sentences.map((other) => dot(scaled(embeddingOf('one')), scaled(embeddingOf(other)))),
      );
    }
    expect(worker.answered.at(-1)?.parameters).to.deep.equal({ truncate: true });
  });

  it('tokenizes and decodes by way of the worker', async () => {
    const tokens = await embed<unknown>({ inputs: ['né', 'b'] }, '/tokenize');
    expect(tokens.body).to.deep.equal([[{ text: 'né', flag: true }], [{ text: 'b', flag: true }]]);
    const bare = await embed<unknown>({ inputs: 'a', add_special_tokens: false }, '/tokenize');
    expect(bare.body).to.deep.equal([[{ text: 'a', flag: false }]]);
    const texts = await embed<unknown>({ ids: [[1, 2], [3]], skip_special_tokens: false }, '/decode');
    expect(texts.body).to.deep.equal(['1 2 false', '3 false']);
    expect((await embed<unknown>({ ids: [5] }, '/decode')).body).to.deep.equal(['5 true']);
    for (const path of ['tokenize', 'decode']) {
      const refused = await refusal(`/models/${plain}/${path}`, { inputs: 'a', ids: [1] });
      expect(refused).to.deep.include({ status: 501, error_type: 'Backend' });
    }
  });

  it('refuses more to tokenize or decode than an answer should hold', async () => {
    for (const [path, body] of [
      ['/tokenize', { inputs: Array(20).fill('x'.repeat(16_000)) }],
      ['/decode', { ids: Array(20).fill(Array(16_000).fill(1)) }],
    ] as const) {
      const refused = await refusal(path, body);
      expect(refused, path).to.deep.include({ status: 413, error_type: 'Validation' });
      expect(refused.error).to.match(/bytes together/);
    }
  });

  it('says what cannot be had here', async () => {
    for (const path of ['/embed_all', '/embed_sparse', '/predict', '/rerank', `/models/${text}/rerank`]) {
      const refused = await refusal(path, { inputs: 'a' });
      expect(refused, path).to.deep.include({ status: 501, error_type: 'Backend' });
      expect(refused.error).to.match(/not to be had/);
    }
  });

  it('tells about its model', async () => {
    const { status, body } = await get(`${gateway.url}/info`);
    expect(status).to.equal(200);
    expect(body).to.deep.include({
      model_id: text,
      model_dtype: 'float32',
      model_type: { embedding: { pooling: 'cls' } },
      max_input_length: 256,
      max_batch_tokens: 1024,
      max_batch_requests: 16,
      max_client_batch_size: 100,
      max_concurrent_requests: 20_000,
      auto_truncate: false,
      tokenization_workers: 2,
    });
    expect(body.version).to.match(/^\d+\.\d+\.\d+/);
    expect((await get(`${gateway.url}/models/${plain}/info`)).body).to.include({ model_id: plain });
  });

  it('is healthy while its model is served', async () => {
    const healthy = await fetch(`${gateway.url}/health`);
    expect(healthy.status).to.equal(200);
    expect(await healthy.text()).to.equal('');
    expect((await fetch(`${gateway.url}/models/${plain}/health`)).status).to.equal(200);
    const waiting = await harness.gateway({ models: [uniqueName('absent'), text] });
    const unhealthy = await get<TeiError>(`${waiting.url}/health`);
    expect(unhealthy.status).to.equal(503);
    expect(unhealthy.body.error_type).to.equal('Unhealthy');
    expect(Number(unhealthy.headers.get('retry-after'))).to.be.at.least(1);
  });

  it('asks for a key but for /health, which tells no names', async () => {
    const { entry, key } = makeApiKey('infers', ['infer']);
    const keyed = await harness.gateway({ models: [text], teiModel: 'nope', apiKeys: [entry] });
    const headers = { authorization: `Bearer ${key}` };
    for (const path of ['/', '/embed', `/models/${text}/embed`, '/tokenize', '/decode', '/similarity']) {
      expect((await post(keyed.url + path, { inputs: 'a' })).status, path).to.equal(401);
    }
    for (const path of ['/info', `/models/${text}/info`, `/models/${text}/health`]) {
      expect((await get(keyed.url + path)).status, path).to.equal(401);
    }
    expect((await get(`${keyed.url}/models/${text}/info`, headers)).status).to.equal(200);
    const health = await get<TeiError>(`${keyed.url}/health`);
    expect(health.status).to.equal(503);
    expect(health.body.error).not.to.include(text);
  });

  it('does not pass over a model that may be the first text-embedding one', async () => {
    const waiting = await harness.gateway({ models: [uniqueName('absent'), text] });
    const { status, body } = await post<TeiError>(`${waiting.url}/embed`, { inputs: 'a' });
    expect(status).to.equal(503);
    expect(body.error_type).to.equal('Unhealthy');
    const none = await harness.gateway({ models: [identity] });
    const missing = await post<TeiError>(`${none.url}/embed`, { inputs: 'a' });
    expect(missing.status).to.equal(404);
    expect(missing.body.error).to.include('MILLRACE_TEI_MODEL');
  });

  it('fails as a whole when an item fails, naming it as the client wrote it', async () => {
    const long = await refusal('/embed', { inputs: ['a', 'bad'] });
    expect(long).to.deep.include({ status: 413, error_type: 'Validation' });
    expect(long.error).to.include('inputs[1]: Too long.');
    const failed = await refusal('/embed', { inputs: 'broken' });
    expect(failed).to.deep.include({ status: 424, error_type: 'Backend' });
    const inputs = { source_sentence: 'a', sentences: ['b', 'bad'] };
    expect((await refusal('/similarity', { inputs })).error).to.include('inputs.sentences[1]: Too long.');
    const unknown = await refusal('/decode', { ids: [[1], [99]] });
    expect(unknown).to.deep.include({ status: 422, error_type: 'Tokenizer' });
    expect(unknown.error).to.include('ids[1]: ');
  });

  it('answers what is not an address or a method in its own shape', async () => {
    const method = await fetch(`${gateway.url}/embed`, { method: 'PUT' });
    expect(method.status).to.equal(405);
    expect(method.headers.get('allow')).to.include('POST');
    expect((await fetch(`${gateway.url}/`, { method: 'PUT' })).status).to.equal(405);
    expect((await fetch(`${gateway.url}/`, { method: 'OPTIONS' })).status).to.equal(204);
    expect((await method.json()) as TeiError).to.include({ error_type: 'Validation' });
    const unknown = await refusal('/models/nope/embed', { inputs: 'a' });
    expect(unknown).to.deep.include({ status: 404, error_type: 'Validation' });
    expect(unknown.error).to.include(text);
    const tensors = await refusal(`/models/${identity}/embed`, { inputs: 'a' });
    expect(tensors).to.deep.include({ status: 413, error_type: 'Validation' });
  });
});
