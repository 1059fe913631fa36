import { bytesElements, decodeFrame } from '@millrace/shared';
import { expect } from 'chai';
import OpenAI, {
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from 'openai';
import { makeApiKey } from '../../admission/api-keys.js';
import type { Gateway } from '../../gateway.js';
import { Harness, post } from '../../test-support/harness.js';
import { DIMENSIONS, identityModel, textModel } from '../../test-support/models.js';
import { uniqueName, until } from '../../test-support/redis.js';
import { embeddingOf, type StandInWorker } from '../../test-support/stand-in-worker.js';

/** What a call of the client was refused with. */
async function refusal(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  try {
    await call;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error;
    throw error;
  }
  throw new Error('it was answered');
}

function clientOf(url: string, options: ConstructorParameters<typeof OpenAI>[0] = {}): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, ...options });
}

describe("OpenAI's door, by OpenAI's client", () => {
  const harness = new Harness();
  const model = uniqueName('openai');
  const old = uniqueName('openai-old');
  const tensors = uniqueName('openai-tensors');
  const { key, entry } = makeApiKey('client', ['infer']);
  let worker: StandInWorker;
  let gateway: Gateway;
  let client: OpenAI;
  const began = Date.now();

  before(async () => {
    const operations = ['embed-tokens'] as const;
    const limits = { maxRequestItems: 4096 };
    worker = await harness.worker(textModel(model, { operations, limits, minDimensions: 2 }), {
      verdict: (text, index) => {
        if (text.startsWith('bad')) return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        if (text === 'broken') return { status: 'failed', code: 'inference_failed', message: 'It broke.' };
        if (text === 'cut') return { status: 'ok', truncated: true, tokens: 9 };
        return { status: 'ok', tokens: 3 + index };
      },
    });
    await harness.worker(textModel(old));
    await harness.worker(identityModel(tensors));
    gateway = await harness.gateway({ apiKeys: [entry] });
    client = clientOf(gateway.url, { apiKey: key });
  });
  after(() => harness.release());

  it('answers its default call, which decodes base64 unchecked, with the very vector', async () => {
    const { data, usage, ...rest } = await client.embeddings.create({ model, input: 'hello' });
    expect(rest).to.deep.equal({ object: 'list', model });
    expect(data).to.deep.equal([
      { object: 'embedding', index: 0, embedding: embeddingOf('hello').map(Math.fround) },
    ]);
    expect(usage).to.deep.equal({ prompt_tokens: 3, total_tokens: 3 });
  });

  it('answers numbers where they are asked for', async () => {
    const { data } = await client.embeddings.create({
      model,
      input: ['a', 'bc'],
      encoding_format: 'float',
      user: 'someone',
    });
    for (const [i, text] of ['a', 'bc'].entries()) {
      expect(data[i]).to.include({ object: 'embedding', index: i });
      for (const [k, x] of embeddingOf(text).entries()) expect(data[i]?.embedding[k]).to.be.closeTo(x, 1e-6);
    }
  });

  it('answers a list in order over several jobs, and counts the tokens of all', async () => {
    const input = Array.from({ length: 2048 }, (_, i) => `text ${i}`);
    const { data, usage } = await client.embeddings.create({ model, input });
    expect(data.map(({ index }) => index)).to.deep.equal(input.map((_, i) => i));
    expect(data.map(({ embedding }) => embedding)).to.deep.equal(
      input.map((text) => embeddingOf(text).map(Math.fround)),
    );
    expect(usage.total_tokens).to.equal(input.reduce((sum, _, i) => sum + 3 + i, 0));
  });

  it('hands token ids over as they are, one text or many', async () => {
    for (const [input, expected] of [
      [[5, 70_000], [[5, 70_000]]],
      [
        [[1], [2, 3, 4]],
        [[1], [2, 3, 4]],
      ],
    ] as [number[] | number[][], number[][]][]) {
      const { data } = await client.embeddings.create({ model, input });
      expect(data).to.have.length(expected.length);
      const part = worker.answered.at(-1);
      expect(part).to.include({ operation: 'embed-tokens', count: expected.length });
      const frame =
        part && 'inline' in part.payload ? Buffer.from(part.payload.inline, 'base64') : Buffer.alloc(0);
      const [tensor] = decodeFrame(frame).tensors;
      if (!tensor) throw new Error('the part had no tensor');
      expect(tensor).to.include({ name: 'token_ids', datatype: 'BYTES' });
      const ids = bytesElements(tensor).map((bytes) => [...new Uint32Array(Uint8Array.from(bytes).buffer)]);
      expect(ids).to.deep.equal(expected);
    }
  });

  it('shortens vectors where the model allows it, to length 1, alike in both encodings', async () => {
    const [x = 0, y = 0] = embeddingOf('short');
    const expected = [x, y].map((value) => value / Math.hypot(x, y));
    for (const encoding_format of ['float', 'base64', undefined] as const) {
      const input = { model, input: 'short', dimensions: 2, ...(encoding_format && { encoding_format }) };
      const [only] = (await client.embeddings.create(input)).data;
      const raw = only?.embedding as unknown as number[] | string;
      const bytes = typeof raw === 'string' ? Uint8Array.from(Buffer.from(raw, 'base64')) : undefined;
      const vector = bytes ? [...new Float32Array(bytes.buffer)] : (raw as number[]);
      expect(vector).to.have.length(2);
      for (const [i, value] of expected.entries()) expect(vector[i]).to.be.closeTo(value, 1e-6);
    }
    const whole = await client.embeddings.create({ model, input: 'short', dimensions: DIMENSIONS });
    expect(whole.data[0]?.embedding).to.deep.equal(embeddingOf('short').map(Math.fround));
  });

  it('refuses dimensions that a model does not allow', async () => {
    for (const [name, dimensions] of [
      [model, 1],
      [model, DIMENSIONS + 1],
      [old, 2],
    ] as const) {
      const error = await refusal(client.embeddings.create({ model: name, input: 'a', dimensions }));
      expect(error).to.be.instanceOf(BadRequestError);
      expect(error).to.include({ param: 'dimensions', code: 'invalid_input', type: 'invalid_request_error' });
      expect(error.message).to.include(name);
    }
  });

  it('says which texts were cut', async () => {
    const answer = await client.embeddings.create({ model, input: ['a', 'cut', 'b'] });
    expect(answer).to.have.deep.property('truncated', [1]);
  });

  it('fails as a whole when a text fails, naming it', async () => {
    const input = Array.from({ length: 40 }, (_, i) => (i === 17 || i === 33 ? 'bad' : 'good'));
    const error = await refusal(client.embeddings.create({ model, input }));
    expect(error).to.be.instanceOf(BadRequestError);
    expect(error).to.include({ param: 'input[17]', code: 'text_too_long' });
    expect(error.message).to.include('2 failed (17, 33). input[17]: Too long.');
    const alone = await refusal(client.embeddings.create({ model, input: 'bad' }));
    expect(alone).to.include({ param: 'input', code: 'text_too_long' });
  });

  it('names the request in answers and errors as the client expects', async () => {
    const answer = await client.embeddings.create({ model, input: 'a' });
    expect(answer._request_id).to.match(/^[0-9a-f-]{36}$/);
    const error = await refusal(client.embeddings.create({ model: 'nope', input: 'a' }));
    expect(error.requestID).to.match(/^[0-9a-f-]{36}$/);
  });

  it('throws the client’s own class of each error', async () => {
    const missing = await refusal(client.embeddings.create({ model: 'nope', input: 'a' }));
    expect(missing).to.be.instanceOf(NotFoundError);
    expect(missing).to.include({ code: 'model_not_found', param: 'model', type: 'invalid_request_error' });
    expect(missing.message).to.include(model);
    const stranger = clientOf(gateway.url, { apiKey: 'mr_wrong' });
    expect(await refusal(stranger.embeddings.create({ model, input: 'a' }))).to.be.instanceOf(
      AuthenticationError,
    );
    const broken = await refusal(client.embeddings.create({ model, input: 'broken' }));
    expect(broken).to.be.instanceOf(InternalServerError);
    expect(broken).to.include({ status: 500, type: 'server_error', code: 'inference_failed' });
    const tokens = await refusal(client.embeddings.create({ model: old, input: [1, 2] }));
    expect(tokens).to.include({ status: 501, code: 'unsupported', param: 'input' });
    const tensor = await refusal(client.embeddings.create({ model: tensors, input: 'a' }));
    expect(tensor).to.include({ status: 400, code: 'invalid_input', param: 'model' });
    const chat = await refusal(client.chat.completions.create({ model, messages: [] }));
    expect(chat).to.be.instanceOf(NotFoundError);
    expect(chat.message).to.include('/docs');
  });

  it('lists and retrieves models as the client reads them', async () => {
    const { data } = await client.models.list();
    const listed = data.filter(({ id }) => [model, old, tensors].includes(id));
    expect(listed.map(({ id }) => id).sort()).to.deep.equal([model, old, tensors].sort());
    const seconds = Math.floor(began / 1000);
    for (const { object, created, owned_by } of listed) {
      expect({ object, owned_by }).to.deep.equal({ object: 'model', owned_by: 'millrace' });
      expect(created).to.be.within(seconds - 1, Math.ceil(Date.now() / 1000));
    }
    const one = await client.models.retrieve(model);
    expect(one).to.deep.include(listed.find(({ id }) => id === model));
    const missing = await refusal(client.models.retrieve('nope'));
    expect(missing).to.be.instanceOf(NotFoundError);
    expect(missing.message).to.include(model);
    expect(missing.code).to.equal('model_not_found');
  });

  it('lists a model of several versions once, as the one that is asked', async () => {
    await harness.worker(textModel(old, { version: '10' }));
    const answers = async () => (await client.models.list()).data.filter(({ id }) => id === old);
    let [only, ...more] = await answers();
    while ((only as unknown as { version: string }).version !== '10') [only, ...more] = await answers();
    expect(more).to.deep.equal([]);
    expect(only).to.deep.include({ versions: ['1', '10'], ready: true });
  });

  it('comes back when the answer to overload said, and is answered then', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const name = uniqueName('openai-full');
    await harness.worker(textModel(name), { before: () => held });
    const full = await harness.gateway({ maxQueuedItems: 1 });
    const waits: { at: number; retryAfter: number }[] = [];
    const watched: typeof fetch = async (...request) => {
      const response = await fetch(...request);
      if (response.status === 429) {
        waits.push({ at: performance.now(), retryAfter: Number(response.headers.get('retry-after')) });
        release();
      }
      return response;
    };
    const patient = clientOf(full.url, { maxRetries: 3, fetch: watched });
    const asked = patient.embeddings.create({ model: name, input: 'first' });
    await until('it waits', async () => {
      const metrics = await (await fetch(`${full.url}/metrics`)).text();
      return metrics.includes('millrace_gateway_waiting_requests 1');
    });
    const refused = await refusal(clientOf(full.url).embeddings.create({ model: name, input: 'a' }));
    expect(refused).to.be.instanceOf(RateLimitError);
    expect(refused).to.include({ type: 'rate_limit_error', code: 'queue_full' });
    const [first, second] = await Promise.all([
      asked,
      patient.embeddings.create({ model: name, input: 'second' }),
    ]);
    const [wait] = waits;
    expect(performance.now() - (wait?.at ?? 0)).to.be.at.least((wait?.retryAfter ?? 0) * 1000 - 5);
    expect(wait?.retryAfter).to.be.at.least(1);
    expect(first.data[0]?.embedding).to.deep.equal(embeddingOf('first').map(Math.fround));
    expect(second.data[0]?.embedding).to.deep.equal(embeddingOf('second').map(Math.fround));
  });

  describe('bad input', () => {
    const LONG = Array(2049).fill('a');
    for (const [what, fields, param, code = 'invalid_input'] of [
      ['no model', { model: undefined, input: 'a' }, 'model'],
      ['a model that is no name', { model: 3, input: 'a' }, 'model'],
      ['no input', {}, 'input'],
      ['null for the input', { input: null }, 'input'],
      ['an object for the input', { input: { text: 'a' } }, 'input'],
      ['a number for the input', { input: 3 }, 'input'],
      ['an empty text', { input: '' }, 'input'],
      ['an empty list', { input: [] }, 'input'],
      ['an empty text in a list', { input: ['a', ''] }, 'input[1]'],
      ['a null in a list', { input: ['a', null] }, 'input[1]'],
      ['a list that begins with null', { input: [null, 'a'] }, 'input[0]'],
      ['texts and token ids in one list', { input: ['a', 3] }, 'input[1]'],
      ['token ids and texts in one list', { input: [3, 'a'] }, 'input[1]'],
      ['texts among lists of token ids', { input: [[3], 'a'] }, 'input[1]'],
      ['a list of token ids that is empty', { input: [[3], []] }, 'input[1]'],
      ['lists nested once more', { input: [[3], [[3]]] }, 'input[1][0]'],
      ['a negative token id', { input: [3, -1] }, 'input[1]'],
      ['a token id that is no whole number', { input: [[1], [3, 1.5]] }, 'input[1][1]'],
      ['a token id past 32 bits', { input: [2 ** 32] }, 'input[0]'],
      ['a lone surrogate', '{"model":"MODEL","input":["a","\\ud800"]}', 'input[1]'],
      ['2049 texts', { input: LONG }, 'input', 'too_many_items'],
      ['2049 lists of token ids', { input: LONG.map(() => [1]) }, 'input', 'too_many_items'],
      ['another encoding', { input: 'a', encoding_format: 'hex' }, 'encoding_format'],
      ['dimensions of 0', { input: 'a', dimensions: 0 }, 'dimensions'],
      ['dimensions that are no number', { input: 'a', dimensions: '2' }, 'dimensions'],
      ['dimensions that are no whole number', { input: 'a', dimensions: 2.5 }, 'dimensions'],
      ['a user that is no text', { input: 'a', user: 3 }, 'user'],
      ['a misspelt field', { input: 'a', encodingFormat: 'float' }, 'encodingFormat'],
      ['no object', '["a"]', 'body'],
      ['no JSON', '{"model":', 'body', 'invalid_json'],
      ['nothing', '', 'body', 'invalid_json'],
    ] as const) {
      it(`refuses ${what}, and nothing is run`, async () => {
        const before = worker.answered.length;
        const body = typeof fields === 'string' ? fields.replace('MODEL', model) : { model, ...fields };
        const headers = { authorization: `Bearer ${key}` };
        const answer = await post(`${gateway.url}/v1/embeddings`, body, headers);
        expect(answer.status).to.equal(400);
        expect(answer.headers.get('content-type')).to.equal('application/json');
        expect(Object.keys(answer.body)).to.deep.equal(['error']);
        const error = answer.body.error as Record<string, unknown>;
        expect(Object.keys(error)).to.deep.equal(['message', 'type', 'param', 'code']);
        expect(error).to.include({ type: 'invalid_request_error', param, code });
        expect(error.message).to.be.a('string');
        expect(worker.answered.length).to.equal(before);
      });
    }

    it('takes null for what may be left out, and ignores __proto__', async () => {
      const body = `{"model":"${model}","input":"a","encoding_format":null,"dimensions":null,"user":null,"__proto__":{"dimensions":2}}`;
      const headers = { authorization: `Bearer ${key}` };
      const answer = await post<OpenAI.CreateEmbeddingResponse>(
        `${gateway.url}/v1/embeddings`,
        body,
        headers,
      );
      expect(answer.status).to.equal(200);
      expect(answer.body.data[0]?.embedding).to.have.length(DIMENSIONS);
    });

    it('answers another method and a stranger in its own shape', async () => {
      for (const [path, method, status] of [
        ['/v1/embeddings', 'PUT', 405],
        ['/v1/models', 'POST', 405],
        [`/v1/models/${model}`, 'DELETE', 405],
      ] as const) {
        const headers = { authorization: `Bearer ${key}` };
        const answer = await fetch(gateway.url + path, { method, headers });
        expect(answer.status).to.equal(status);
        const { error } = (await answer.json()) as { error: Record<string, unknown> };
        expect(error).to.include({ code: 'method_not_allowed', type: 'invalid_request_error' });
        const stranger = await fetch(gateway.url + path, { method });
        expect(stranger.status).to.equal(401);
        expect(await stranger.json()).to.have.nested.property('error.code', 'unauthorized');
      }
    });
  });
});
