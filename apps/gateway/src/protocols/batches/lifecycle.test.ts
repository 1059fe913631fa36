import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BATCHES_QUEUE, BULL_PREFIX, batchKey } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { BatchRecord } from '../../batches/batch-record.js';
import { BatchesDoor, expectAll } from '../../test-support/batches-door.js';
import { testRedis, until } from '../../test-support/redis.js';

/** For what takes a second or a few where nothing else runs, in ms. */
const WITHIN_MS = 30_000;

describe('batches, from their making to their end', function () {
  this.timeout(60_000);
  const door = new BatchesDoor();
  const { begun, ended, hold, letGo, linesOf, make, many, read, startGateway, turn, upload } = door;
  let redis: Redis;
  before(async () => {
    redis = testRedis('batches-test');
    await door.open();
  });
  afterEach(letGo);
  after(async () => {
    redis.disconnect();
    await door.close();
  });

  it('counts what is done while it runs, holds still when paused, and goes on when resumed', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(500)) });
    await begun(body.id);
    const paused = await turn(body.id, 'pause');
    expect(paused.body.status).to.equal('paused');
    // Before it is answered what it had asked, so that nothing more is.
    const isGivenUp = async (): Promise<boolean> =>
      (await redis.llen(`${BULL_PREFIX}:${BATCHES_QUEUE}:active`)) === 0;
    await until('its runner gives it up', isGivenUp, WITHIN_MS);
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
    await begun(body.id);
    expect((await turn(body.id, 'cancel')).body.status).to.equal('cancelling');
    const batch = await ended(body.id);
    expect(batch.status).to.equal('cancelled');
    expect(batch.request_counts.completed).to.equal((await linesOf(batch.output_file_id)).length);
    for (const what of ['cancel', 'pause', 'resume'] as const) {
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
    await until(
      'all of them are under way',
      async () => {
        const views = await Promise.all(ids.map((id) => read(id, door.other)));
        return views.every(({ request_counts }) => request_counts.completed > 0);
      },
      WITHIN_MS,
    );
    await closing.close();
    for (const id of ids) {
      const batch = await ended(id, door.other);
      expect(batch.status).to.equal('completed');
      expectAll(await linesOf(batch.output_file_id, door.other), count);
    }
  });

  it('waits for workers, and leaves unrun what its time is over for', async () => {
    await door.worker.pause();
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
      door.worker.resume();
    }
  });

  it('is paused while its output can not be written, says why, and then goes on', async () => {
    hold();
    const { body } = await make({ input_file_id: await upload(many(200)) });
    await begun(body.id);
    const record = JSON.parse((await redis.hget(batchKey(body.id), 'record')) as string) as BatchRecord;
    // A file where the folder of the output belongs.
    const inTheWay = join(door.folder, 'files', record.outputFileId);
    await writeFile(inTheWay, '');
    letGo();
    await until('it says why', async () => (await read(body.id)).errors !== null, WITHIN_MS);
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
