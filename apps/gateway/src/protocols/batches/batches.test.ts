import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  BATCHES_QUEUE,
  BULL_PREFIX,
  batchKey,
  type KeyScope,
  type Part,
  type SettingFlags,
} from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { makeApiKey } from '../../admission/api-keys.js';
import type { BatchRecord } from '../../batches/batch-record.js';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName } from '../../test-support/redis.js';
import { embeddingOf, type StandInWorker } from '../../test-support/stand-in-worker.js';

type Key = ReturnType<typeof makeApiKey>;

interface Batch {
  id: string;
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
  errors: { data: { code: string; message: string }[] } | null;
  [field: string]: unknown;
}

interface OutputLine {
  id: string;
  custom_id: string | null;
  line: number;
  response: { status_code: number; request_id: string; body: Record<string, unknown> } | null;
  error: { code: string; message: string } | null;
}

const SCOPES: KeyScope[] = ['infer', 'jobs'];
const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled']);

function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = async (): Promise<void> => {
      if (await condition()) resolve();
      else setTimeout(() => void look().catch(reject), 20);
    };
    void look().catch(reject);
  });
}

describe('batches', function () {
  this.timeout(60_000);
  const harness = new Harness();
  const texts = uniqueName('text');
  const tensors = uniqueName('tensors');
  const [alice, bob] = ['alice', 'bob'].map((name) => makeApiKey(name, SCOPES)) as [Key, Key];
  const as = ({ key }: Key) => ({ authorization: `Bearer ${key}` });
  let folder: string;
  let redis: Redis;
  let worker: StandInWorker;
  let gateway: Gateway;
  let other: Gateway;
  /** Parts are answered once this resolves. */
  let held = Promise.resolve();
  let letGo: () => void = () => undefined;

  const hold = (): void => {
    held = new Promise((resolve) => {
      letGo = resolve;
    });
  };
  const startGateway = (flags: SettingFlags = {}): Promise<Gateway> =>
    harness.gateway({
      apiKeys: [alice.entry, bob.entry],
      filesUrl: folder,
      maxBodyBytes: 20_000,
      batchItems: 64,
      ...flags,
    });
  const upload = async (content: string | Buffer, key = alice, name = 'lines.jsonl'): Promise<string> => {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([new Uint8Array(Buffer.from(content))]), name);
    const response = await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers: as(key), body: form });
    expect(response.status).to.equal(200);
    return ((await response.json()) as { id: string }).id;
  };
  const make = (fields: Record<string, unknown>, headers: Record<string, string> = {}) =>
    post<Batch>(
      `${gateway.url}/v1/batches`,
      { endpoint: '/v1/embeddings', completion_window: '24h', ...fields },
      { ...as(alice), ...headers },
    );
  const read = async (id: string, at = gateway): Promise<Batch> =>
    (await get<Batch>(`${at.url}/v1/batches/${id}`, as(alice))).body;
  const turn = (id: string, what: string, key = alice) =>
    post<Batch & { error?: { code: string } }>(`${gateway.url}/v1/batches/${id}/${what}`, '', as(key));
  const ended = async (id: string, at = gateway): Promise<Batch> => {
    await until(async () => ENDED.has((await read(id, at)).status));
    return read(id, at);
  };
  const linesOf = async (file: string | null, at = gateway): Promise<OutputLine[]> => {
    if (file === null) return [];
    const response = await fetch(`${at.url}/v1/files/${file}/content`, { headers: as(alice) });
    expect(response.status).to.equal(200);
    const text = await response.text();
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as OutputLine]));
  };
  const run = async (content: string | Buffer, fields: Record<string, unknown> = {}) => {
    const { body } = await make({ input_file_id: await upload(content), ...fields });
    const batch = await ended(body.id);
    return {
      batch,
      output: await linesOf(batch.output_file_id),
      errors: await linesOf(batch.error_file_id),
    };
  };
  const embedLine = (id: string, input: string): string =>
    JSON.stringify({ custom_id: id, body: { model: texts, input } });
  const many = (count: number): string =>
    Array.from({ length: count }, (_, i) => `${embedLine(`n${i}`, `text ${i}`)}\n`).join('');
  const expectAll = (output: readonly OutputLine[], count: number): void => {
    expect(output.map(({ custom_id }) => custom_id)).to.deep.equal(
      Array.from({ length: count }, (_, i) => `n${i}`),
    );
    for (const [i, line] of output.entries()) {
      const { body } = line.response as unknown as { body: { data: [{ embedding: number[] }] } };
      const [{ embedding }] = body.data;
      const expected = embeddingOf(`text ${i}`);
      // As many digits as the model says.
      for (const [at, value] of embedding.entries())
        expect(value).to.be.closeTo(expected[at] as number, 1e-6);
    }
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-batches-'));
    redis = testRedis('batches-test');
    worker = await harness.worker(textModel(texts), {
      before: async (part: Part) => (part.priority === 100 ? held : undefined),
      verdict: (text) =>
        text === 'bad'
          ? { status: 'failed', code: 'inference_failed', message: 'It can not be run.' }
          : { status: 'ok', tokens: text.length },
    });
    await harness.worker(identityModel(tensors));
    gateway = await startGateway();
    other = await startGateway();
  });

  afterEach(() => {
    letGo();
    held = Promise.resolve();
  });

  after(async () => {
    await harness.release();
    redis.disconnect();
    await rm(folder, { recursive: true, force: true });
  });

  it('answers each line by the door that it is for, in the order of the input', async () => {
    const { batch, output, errors } = await run(
      [
        embedLine('a', 'one'),
        JSON.stringify({
          custom_id: 'b',
          method: 'POST',
          url: `/v1/models/${texts}/predict`,
          body: { inputs: ['two', 'three'] },
        }),
        JSON.stringify({
          custom_id: 'c',
          url: `/v2/models/${tensors}/infer`,
          body: { inputs: [{ name: 'int64', datatype: 'INT64', shape: [1, 1], data: [7] }] },
        }),
        JSON.stringify({ custom_id: 'd', url: `/models/${texts}/embed`, body: { inputs: 'four' } }),
        JSON.stringify({ custom_id: 'e', body: { model: texts, input: 'five', encoding_format: 'base64' } }),
      ].join('\n'),
    );
    expect(errors).to.deep.equal([]);
    expect(batch.status).to.equal('completed');
    expect(batch.request_counts).to.deep.equal({ total: 5, completed: 5, failed: 0 });
    expect(output.map(({ custom_id, line }) => [custom_id, line])).to.deep.equal([
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4],
      ['e', 5],
    ]);
    const bodies = output.map(({ response }) => response?.body as Record<string, unknown>);
    expect(bodies[0]).to.deep.include({ object: 'list', model: texts });
    expect(bodies[0]?.usage).to.deep.equal({ prompt_tokens: 3, total_tokens: 3 });
    expect(bodies[1]?.outputs).to.have.length(2);
    expect(bodies[2]?.outputs).to.have.nested.property('[0].datatype', 'INT64');
    const { data } = bodies[4] as { data: [{ embedding: string }] };
    const floats = Buffer.from(data[0].embedding, 'base64');
    expect(floats.readFloatLE(0)).to.equal(Math.fround(embeddingOf('five')[0] as number));
    expect(new Set(output.map(({ id }) => id)).size).to.equal(5);
  });

  it('keeps the digits of 64-bit integers', async () => {
    const line = `{"custom_id":"big","url":"/v2/models/${tensors}/infer","body":{"inputs":[{"name":"int64","datatype":"INT64","shape":[1,1],"data":[9007199254740993]}]}}`;
    const { batch } = await run(line);
    const response = await fetch(`${gateway.url}/v1/files/${batch.output_file_id}/content`, {
      headers: as(alice),
    });
    expect(await response.text()).to.contain('9007199254740993');
  });

  it('tells the error of each line that has one and does the rest', async () => {
    const { batch, output, errors } = await run(
      [
        embedLine('good', 'one'),
        '{"custom_id":',
        '',
        `{"custom_id":"long","body":{"input":"${'x'.repeat(20_000)}"}}`,
        JSON.stringify({ custom_id: 'nowhere', url: '/v1/chat/completions', body: {} }),
        JSON.stringify({ custom_id: 'misspelt', boddy: {}, body: {} }),
        JSON.stringify({ custom_id: 'no model', body: { model: 'nobody', input: 'x' } }),
        JSON.stringify({ custom_id: 'no input', body: { model: texts } }),
        embedLine('failing', 'bad'),
        JSON.stringify({
          custom_id: 'binary',
          url: `/v2/models/${tensors}/infer`,
          body: {
            inputs: [{ name: 'int8', datatype: 'INT8', shape: [1, 1], data: [1] }],
            parameters: { binary_data_output: true },
          },
        }),
        '[1, 2]',
        embedLine('also good', 'two'),
      ].join('\n'),
    );
    expect(batch.status).to.equal('completed');
    expect(batch.request_counts).to.deep.equal({ total: 12, completed: 2, failed: 10 });
    expect(output.map(({ custom_id }) => custom_id)).to.deep.equal(['good', 'also good']);
    const told = errors.map(({ line, custom_id, response, error }) => [
      line,
      custom_id,
      response ? response.status_code : error?.code,
    ]);
    expect(told).to.deep.equal([
      [2, null, 'invalid_json'],
      [3, null, 'invalid_json'],
      [4, null, 'body_too_large'],
      [5, 'nowhere', 'invalid_input'],
      [6, 'misspelt', 'invalid_input'],
      [7, 'no model', 404],
      [8, 'no input', 400],
      [9, 'failing', 500],
      [10, 'binary', 501],
      [11, null, 'invalid_input'],
    ]);
    expect(errors[4]?.error?.message).to.match(/^boddy /);
    expect(errors[6]?.response?.body).to.have.nested.property('error.param', 'input');
  });

  it('takes a file in gzip', async () => {
    const { batch, output } = await run(gzipSync(many(200)));
    expect(batch.request_counts).to.deep.equal({ total: 200, completed: 200, failed: 0 });
    expectAll(output, 200);
  });

  it('fails with the reason where the file has no lines, or is broken gzip', async () => {
    const empty = await run('');
    expect(empty.batch.status).to.equal('failed');
    expect(empty.batch.errors?.data.map(({ code }) => code)).to.deep.equal(['empty_file']);
    const broken = await run(gzipSync(many(2000)).subarray(0, 2000));
    expect(broken.batch.status).to.equal('failed');
    expect(broken.batch.errors?.data.map(({ code }) => code)).to.deep.equal(['invalid_encoding']);
  });

  it('counts what is done while it runs, holds still when paused, and goes on when resumed', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(500)) });
    await until(async () => (await read(body.id)).status === 'in_progress');
    const paused = await turn(body.id, 'pause');
    expect(paused.body.status).to.equal('paused');
    // Before it is answered what it had asked, so that nothing more is.
    // Its runner gives it up.
    await until(async () => (await redis.llen(`${BULL_PREFIX}:${BATCHES_QUEUE}:active`)) === 0);
    const still = await read(body.id);
    expect(still.status).to.equal('paused');
    expect(still.request_counts.completed).to.be.lessThan(500);
    letGo();
    expect((await turn(body.id, 'resume')).body.status).to.equal('in_progress');
    const batch = await ended(body.id);
    expect(batch.request_counts).to.deep.equal({ total: 500, completed: 500, failed: 0 });
    expectAll(await linesOf(batch.output_file_id), 500);
  });

  it('ends as cancelled with what was answered, and then can not be turned any more', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(500)) });
    await until(async () => (await read(body.id)).status === 'in_progress');
    expect((await turn(body.id, 'cancel')).body.status).to.equal('cancelling');
    const batch = await ended(body.id);
    expect(batch.status).to.equal('cancelled');
    expect(batch.request_counts.completed).to.equal((await linesOf(batch.output_file_id)).length);
    for (const what of ['cancel', 'pause', 'resume']) {
      const refused = await turn(body.id, what);
      expect(refused.status).to.equal(409);
      expect(refused.body.error?.code).to.equal('batch_ended');
    }
  });

  it('cancels a batch that is paused', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(100)) });
    await turn(body.id, 'pause');
    await turn(body.id, 'cancel');
    expect((await ended(body.id)).status).to.equal('cancelled');
  });

  it('goes on at another gateway when the one that runs it closes, and writes each line once', async () => {
    const closing = await startGateway();
    const count = 1000;
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push((await make({ input_file_id: await upload(many(count)) })).body.id);
    }
    await until(async () => {
      const views = await Promise.all(ids.map((id) => read(id, other)));
      return views.every(({ request_counts }) => request_counts.completed > 0);
    });
    await closing.close();
    for (const id of ids) {
      const batch = await ended(id, other);
      expect(batch.status).to.equal('completed');
      expectAll(await linesOf(batch.output_file_id, other), count);
    }
  });

  it('is the same batch when asked for again under one key, and no other', async () => {
    const input = await upload(many(3));
    const named = { 'idempotency-key': uniqueName('key') };
    const first = await make({ input_file_id: input }, named);
    const again = await make({ input_file_id: input }, named);
    expect(again.body.id).to.equal(first.body.id);
    const changed = await make({ input_file_id: input, endpoint: '/embed' }, named);
    expect(changed.status).to.equal(422);
    await ended(first.body.id);
    const deleted = await fetch(`${gateway.url}/v1/files/${input}`, { method: 'DELETE', headers: as(alice) });
    expect(deleted.status).to.equal(200);
    expect((await make({ input_file_id: input }, named)).body.id).to.equal(first.body.id);
    const list = await get<{ data: Batch[] }>(`${gateway.url}/v1/batches?limit=100`, as(alice));
    expect(list.body.data.filter(({ id }) => id === first.body.id)).to.have.length(1);
  });

  it("shows nobody another key's batch or file", async () => {
    const input = await upload(many(3));
    const { body } = await make({ input_file_id: input });
    expect((await get(`${gateway.url}/v1/batches/${body.id}`, as(bob))).status).to.equal(404);
    expect((await turn(body.id, 'cancel', bob)).status).to.equal(404);
    const stolen = await post(
      `${gateway.url}/v1/batches`,
      { input_file_id: input, endpoint: '/v1/embeddings', completion_window: '24h' },
      as(bob),
    );
    expect(stolen.status).to.equal(404);
    const list = await get<{ data: Batch[] }>(`${gateway.url}/v1/batches`, as(bob));
    expect(list.body.data).to.deep.equal([]);
  });

  it('lists the newest first, page by page', async () => {
    const input = await upload(many(1));
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.push((await make({ input_file_id: input })).body.id);
    const page = await get<{ data: Batch[]; has_more: boolean; last_id: string }>(
      `${gateway.url}/v1/batches?limit=2`,
      as(alice),
    );
    expect(page.body.data.map(({ id }) => id)).to.deep.equal([made[2], made[1]]);
    expect(page.body.has_more).to.equal(true);
    const next = await get<{ data: Batch[] }>(
      `${gateway.url}/v1/batches?limit=1&after=${page.body.last_id}`,
      as(alice),
    );
    expect(next.body.data.map(({ id }) => id)).to.deep.equal([made[0]]);
  });

  it('names the field that is at fault', async () => {
    const input = await upload(many(1));
    const fields: [Record<string, unknown>, string][] = [
      [{ input_file_id: input, endpoint: '/v1/chat/completions' }, 'endpoint'],
      [{ input_file_id: input, completion_window: '1y' }, 'completion_window'],
      [{ input_file_id: input, completion_window: '8d' }, 'completion_window'],
      [{ input_file_id: input, metadata: { a: 1 } }, 'metadata.a'],
      [{ input_file_id: 7 }, 'input_file_id'],
      [{ input_file_id: input, window: '24h' }, 'window'],
    ];
    for (const [body, param] of fields) {
      const answer = await make(body);
      expect(answer.status).to.equal(400);
      expect(answer.body).to.have.nested.property('error.param', param);
    }
    expect((await make({ input_file_id: 'file-none' })).status).to.equal(404);
    const named = await make({ input_file_id: input }, { 'idempotency-key': 'x'.repeat(256) });
    expect(named.status).to.equal(400);
    expect(named.body).to.have.nested.property('error.param', 'Idempotency-Key');
  });

  it('waits for workers, and leaves unrun what its time is over for', async () => {
    await worker.pause();
    try {
      const { body } = await make({ input_file_id: await upload(many(100)), completion_window: '2s' });
      const batch = await ended(body.id);
      expect(batch.status).to.equal('expired');
      expect(batch.request_counts).to.deep.equal({ total: 100, completed: 0, failed: 100 });
      const errors = await linesOf(batch.error_file_id);
      expect(errors.map(({ custom_id }) => custom_id)).to.deep.equal(
        Array.from({ length: 100 }, (_, i) => `n${i}`),
      );
      expect(new Set(errors.map(({ error }) => error?.code))).to.deep.equal(new Set(['batch_expired']));
    } finally {
      worker.resume();
    }
  });

  it('is paused while its output can not be written, says why, and then goes on', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(200)) });
    await until(async () => (await read(body.id)).status === 'in_progress');
    const record = JSON.parse((await redis.hget(batchKey(body.id), 'record')) as string) as BatchRecord;
    // A file where the folder of the output belongs.
    const inTheWay = join(folder, 'files', record.outputFileId);
    await writeFile(inTheWay, '');
    letGo();
    await until(async () => (await read(body.id)).errors !== null);
    const heldUp = await read(body.id);
    expect(heldUp.status).to.equal('paused');
    expect(heldUp.errors?.data[0]?.code).to.equal('storage_unavailable');
    await rm(inTheWay);
    await turn(body.id, 'resume');
    const batch = await ended(body.id);
    expect(batch.status).to.equal('completed');
    expect(batch.errors).to.equal(null);
    expectAll(await linesOf(batch.output_file_id), 200);
  });
});
