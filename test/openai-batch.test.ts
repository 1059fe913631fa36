import { expect } from 'chai';
import OpenAI, { BadRequestError, NotFoundError, toFile } from 'openai';
import { type AnsweredLine, embeddingLine, fileOf, readLines, vectorOf } from './support/batch-lines.js';
import { Cluster } from './support/cluster.js';
import { distance, MINILM, sampleSentences } from './support/minilm.js';

/** Of one text among others. */
const SAME = 1e-4;
const POLL_MS = 100;
const WINDOW = { endpoint: '/v1/embeddings', completion_window: '24h' } as const;

describe("OpenAI's client with files and batches", function () {
  this.timeout(240_000);
  let cluster: Cluster;
  let client: OpenAI;
  before(async () => {
    cluster = await Cluster.start({ models: [MINILM] });
    client = new OpenAI({ baseURL: `${cluster.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  after(() => cluster?.stop());

  async function upload(lines: readonly string[], name = 'lines.jsonl'): Promise<OpenAI.FileObject> {
    return await client.files.create({
      file: await toFile(Buffer.from(fileOf(lines)), name),
      purpose: 'batch',
    });
  }

  async function end(id: string): Promise<OpenAI.Batch> {
    for (;;) {
      const batch = await client.batches.retrieve(id);
      if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) return batch;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async function contentOf(fileId: string | null | undefined): Promise<AnsweredLine[]> {
    return readLines(await (await client.files.content(fileId ?? '')).text());
  }

  it('embeds a file of texts, in its order, with the vectors of /v1/embeddings', async () => {
    const texts = (await sampleSentences()).slice(0, 100);
    const file = await upload(texts.map((text, i) => embeddingLine(`text-${i}`, text)));
    expect(file).to.include({ object: 'file', filename: 'lines.jsonl', purpose: 'batch' });
    const metadata = { run: 'first' };
    const made = await client.batches.create({ ...WINDOW, input_file_id: file.id, metadata });
    expect(made).to.include({ object: 'batch', endpoint: '/v1/embeddings', input_file_id: file.id });
    expect(made.metadata).to.deep.equal(metadata);

    const batch = await end(made.id);
    expect(batch.status).to.equal('completed');
    expect(batch.request_counts).to.deep.equal({ total: 100, completed: 100, failed: 0 });
    expect(batch.error_file_id).to.equal(null);
    const answered = await contentOf(batch.output_file_id);
    expect(answered.map(({ custom_id }) => custom_id)).to.deep.equal(texts.map((_, i) => `text-${i}`));
    expect(answered.map(({ response }) => response?.status_code)).to.deep.equal(texts.map(() => 200));

    const { data } = await client.embeddings.create({ model: MINILM, input: texts });
    const wrong = answered.filter((line, i) => distance(vectorOf(line), data[i]?.embedding ?? []) > SAME);
    expect(wrong).to.deep.equal([]);
    // Neighbours differ: a shift by one would be seen.
    expect(distance(vectorOf(answered[0] as AnsweredLine), data[1]?.embedding ?? [])).to.be.above(0.01);
  });

  it('finds a line that the door refuses in the error file, as the door answers it', async () => {
    const file = await upload([embeddingLine('empty', ''), embeddingLine('good', 'hello')]);
    const { id } = await client.batches.create({ ...WINDOW, input_file_id: file.id });
    const { status, request_counts, output_file_id, error_file_id } = await end(id);
    expect(status).to.equal('completed');
    expect(request_counts).to.deep.equal({ total: 2, completed: 1, failed: 1 });
    expect((await contentOf(output_file_id)).map(({ custom_id }) => custom_id)).to.deep.equal(['good']);
    const [failed] = await contentOf(error_file_id);
    const refusal = await client.embeddings
      .create({ model: MINILM, input: '' })
      .catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(BadRequestError);
    expect(failed?.custom_id).to.equal('empty');
    expect(failed?.response?.status_code).to.equal(400);
    expect(failed?.response?.body.error).to.deep.equal((refusal as BadRequestError).error);
  });

  it('lists, retrieves and deletes files', async () => {
    const names = ['a.jsonl', 'b.jsonl'];
    const files: OpenAI.FileObject[] = [];
    for (const name of names) files.push(await upload([embeddingLine('1', name)], name));
    const listed: string[] = [];
    for await (const { id } of client.files.list({ limit: 1, order: 'desc' })) listed.push(id);
    expect(listed.slice(0, 2)).to.deep.equal(files.map(({ id }) => id).reverse());
    const [first, second] = files.map(({ id }) => id);
    expect(await client.files.retrieve(first ?? '')).to.deep.equal(files[0]);
    expect(await client.files.delete(second ?? '')).to.deep.equal({
      id: second,
      object: 'file',
      deleted: true,
    });
    const gone = await client.files.retrieve(second ?? '').catch((error: unknown) => error);
    expect(gone).to.be.instanceOf(NotFoundError).with.property('code', 'file_not_found');
  });

  it('lists batches, and cancels one', async () => {
    const file = await upload([embeddingLine('1', 'hello')]);
    const [worker] = cluster.workers;
    // Nothing is answered meanwhile, so that there is something to cancel.
    worker?.kill('SIGSTOP');
    try {
      const { id } = await client.batches.create({ ...WINDOW, input_file_id: file.id });
      const listed: string[] = [];
      for await (const batch of client.batches.list({ limit: 2 })) listed.push(batch.id);
      expect(listed[0]).to.equal(id);
      expect(new Set(listed)).to.have.property('size', listed.length).that.is.at.least(3);
      expect((await client.batches.cancel(id)).status).to.be.oneOf(['cancelling', 'cancelled']);
      const batch = await end(id);
      expect(batch.status).to.equal('cancelled');
      expect(batch.request_counts).to.include({ completed: 0, failed: 0 });
    } finally {
      worker?.kill('SIGCONT');
    }
  });

  it('is told what is wrong with a batch', async () => {
    const missing = await client.batches
      .create({ ...WINDOW, input_file_id: 'file-nobody' })
      .catch((error: unknown) => error);
    expect(missing).to.be.instanceOf(NotFoundError).with.property('code', 'file_not_found');
    const file = await upload([embeddingLine('1', 'hello')]);
    const wrong = await client.batches
      .create({ ...WINDOW, input_file_id: file.id, endpoint: '/v1/chat/completions' })
      .catch((error: unknown) => error);
    expect(wrong).to.be.instanceOf(BadRequestError).with.property('param', 'endpoint');
  });
});
