import { expect } from 'chai';
import OpenAI, { BadRequestError } from 'openai';
import { predict } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { distance, MINILM, sampleSentences } from './support/minilm.js';

/** Answers come in 7 digits at the native door. */
const ROUNDED = 1e-6;
/** Of one text among others. */
const SAME = 1e-4;
/** "hello world", without and with the model's special tokens. */
const HELLO_WORLD = [7592, 2088];
const HELLO_WORLD_WHOLE = [101, ...HELLO_WORLD, 102];

describe("OpenAI's client with the real model", () => {
  let cluster: Cluster;
  let client: OpenAI;
  before(async () => {
    // However busy the machine: how fast it is, is no matter here.
    const env = { MILLRACE_WAIT_MS: '170000', MILLRACE_MAX_WAIT_MS: '170000' };
    cluster = await Cluster.start({ models: [MINILM], workers: 2, env });
    client = new OpenAI({ baseURL: `${cluster.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  after(() => cluster.stop());

  const embed = (input: OpenAI.EmbeddingCreateParams['input'], rest: object = {}) =>
    client.embeddings.create({ model: MINILM, input, ...rest });

  it('gets the native door’s vector and the true number of tokens, by default and as numbers', async () => {
    const native = await predict(cluster.url, MINILM, 'hello world');
    for (const rest of [{}, { encoding_format: 'float' }]) {
      const { data, usage } = await embed('hello world', rest);
      expect(data[0]?.embedding).to.have.length(384);
      expect(distance(data[0]?.embedding ?? [], native.outputs[0] ?? [])).to.be.below(ROUNDED);
      expect(usage).to.deep.equal({ prompt_tokens: 4, total_tokens: 4 });
    }
  });

  it('gets the vector of a text for its token ids, with special tokens or without', async () => {
    const text = (await embed('hello world')).data[0]?.embedding ?? [];
    const one = await embed(HELLO_WORLD);
    expect(one.usage.prompt_tokens).to.equal(4);
    const many = await embed([HELLO_WORLD_WHOLE, HELLO_WORLD, [7592]]);
    expect(many.usage.prompt_tokens).to.equal(4 + 4 + 3);
    for (const answer of [one.data[0], many.data[0], many.data[1]]) {
      expect(distance(answer?.embedding ?? [], text)).to.be.below(SAME);
    }
    expect(distance(many.data[2]?.embedding ?? [], text)).to.be.above(0.01);
  });

  it('is told which token ids the model does not know', async () => {
    const error = await embed([HELLO_WORLD, [7592, 30_522]]).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BadRequestError);
    expect(error).to.include({ param: 'input[1]', code: 'invalid_input' });
    expect((error as Error).message)
      .to.include('input[1]')
      .and.to.include('30522');
  });

  it('is told that this model’s vectors cannot be shortened', async () => {
    const error = await embed('hello', { dimensions: 128 }).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BadRequestError);
    expect(error).to.include({ param: 'dimensions', code: 'invalid_input' });
    expect((await embed('hello', { dimensions: 384 })).data[0]?.embedding).to.have.length(384);
  });

  it('gets 2048 texts in order from both workers, as the native door answers them', async function () {
    this.timeout(360_000);
    const beginnings = (await sampleSentences()).map((sentence) => sentence.split(' ', 4).join(' '));
    const input = Array.from({ length: 2048 }, (_, i) => `${beginnings[i % beginnings.length]} ${i}`);
    const before = await Promise.all(cluster.workers.map(({ url }) => itemsOf(url)));
    const { data, usage } = await embed(input);
    const after = await Promise.all(cluster.workers.map(({ url }) => itemsOf(url)));
    const shares = after.map((items, i) => items - (before[i] ?? 0));
    expect(shares.reduce((sum, items) => sum + items, 0)).to.equal(2048);
    for (const share of shares) expect(share).to.be.above(100);
    expect(usage.total_tokens).to.be.above(2048 * 5);

    const { outputs } = await predict(cluster.url, MINILM, input);
    expect(data.map(({ index }) => index)).to.deep.equal(input.map((_, i) => i));
    const wrong = data.filter(({ embedding }, i) => distance(embedding, outputs[i] ?? []) > SAME);
    expect(wrong).to.deep.equal([]);
    // Neighbours differ: a shift by one would be seen.
    expect(distance(data[0]?.embedding ?? [], outputs[1] ?? [])).to.be.above(0.01);
  });

  it('lists and retrieves the model', async () => {
    const listed: string[] = [];
    for await (const { id } of client.models.list()) listed.push(id);
    expect(listed).to.deep.equal([MINILM]);
    const model = await client.models.retrieve(MINILM);
    expect(model).to.include({ id: MINILM, object: 'model' });
    const now = Date.now() / 1000;
    expect(model.created).to.be.within(now - 600, now + 1);
  });
});

/** Items that a worker has answered. */
async function itemsOf(workerUrl: string): Promise<number> {
  const text = await (await fetch(`${workerUrl}/metrics`)).text();
  const row = text
    .split('\n')
    .find((line) => line.startsWith('millrace_worker_items_total{') && line.includes('"ok"'));
  return Number(row?.slice(row.lastIndexOf(' ')) ?? 0);
}
