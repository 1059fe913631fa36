import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { batchKey, fileHoldKey } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { BatchRecord } from '../../batches/batch-record.js';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until } from '../../test-support/redis.js';

/** Batches that one gateway runs at once. */
const AT_ONCE = 4;

interface Batch {
  id: string;
  status: string;
  error?: { code: string; param: string | null };
}

describe('batches that wait for their turn', function () {
  this.timeout(30_000);
  const harness = new Harness();
  const model = uniqueName('text');
  let folder: string;
  let redis: Redis;
  let gateway: Gateway;
  let letGo: () => void = () => undefined;
  const answering = new Promise<void>((resolve) => {
    letGo = resolve;
  });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-batches-'));
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    await harness.worker(textModel(model), { before: () => answering });
    gateway = await harness.gateway({ filesUrl: folder });
  });
  after(async () => {
    letGo();
    await harness.release();
    await rm(folder, { recursive: true, force: true });
  });

  const upload = async (): Promise<string> => {
    const form = new FormData();
    form.set('purpose', 'batch');
    const line = JSON.stringify({ custom_id: '1', body: { model, input: 'a text' } });
    form.set('file', new Blob([`${line}\n`]), 'lines.jsonl');
    const response = await fetch(`${gateway.url}/v1/files`, { method: 'POST', body: form });
    return ((await response.json()) as { id: string }).id;
  };
  const make = async (input_file_id: string) =>
    await post<Batch>(`${gateway.url}/v1/batches`, {
      input_file_id,
      endpoint: '/v1/embeddings',
      completion_window: '1h',
    });
  const statusOf = async (id: string): Promise<string> =>
    (await get<Batch>(`${gateway.url}/v1/batches/${id}`)).body.status;
  /** Of how many files of a batch what is written has no record yet and is kept all the same. */
  const held = async (id: string): Promise<number> => {
    const record = JSON.parse((await redis.hget(batchKey(id), 'record')) as string) as BatchRecord;
    return await redis.exists(fileHoldKey(record.outputFileId), fileHoldKey(record.errorFileId));
  };
  const turn = (id: string, what: string) => post<Batch>(`${gateway.url}/v1/batches/${id}/${what}`, '');

  it('are cancelled at once, whatever runs before them, and keep nothing', async () => {
    const file = await upload();
    const running: string[] = [];
    for (let i = 0; i < AT_ONCE; i++) running.push((await make(file)).body.id);
    for (const id of running) {
      await until('it runs', async () => (await statusOf(id)) === 'in_progress');
    }
    const [waiting, paused] = [(await make(file)).body.id, (await make(file)).body.id];
    await turn(paused, 'pause');
    for (const id of [waiting, paused]) {
      expect((await turn(id, 'cancel')).status).to.equal(200);
      await until('it is cancelled', async () => (await statusOf(id)) === 'cancelled');
    }
    for (const id of running) expect(await statusOf(id)).to.equal('in_progress');
    for (const id of running) expect(await held(id)).to.equal(2);
    for (const id of [waiting, paused]) expect(await held(id)).to.equal(0);
    letGo();
    for (const id of running) await until('it is done', async () => (await statusOf(id)) === 'completed');
    for (const id of running) await until('nothing is held for it', async () => (await held(id)) === 0);
  });

  it('and what is not there name the field that is at fault', async () => {
    const noFile = await make('file-none');
    expect(noFile.status).to.equal(404);
    expect(noFile.body.error).to.include({ code: 'file_not_found', param: 'input_file_id' });
    const noPage = await get<Batch>(`${gateway.url}/v1/batches?after=batch_none`);
    expect(noPage.status).to.equal(400);
    expect(noPage.body.error).to.include({ code: 'invalid_input', param: 'after' });
    const noBatch = await get<Batch>(`${gateway.url}/v1/batches/batch_none`);
    expect(noBatch.status).to.equal(404);
    expect(noBatch.body.error).to.include({ code: 'batch_not_found', param: 'batch' });
  });
});
