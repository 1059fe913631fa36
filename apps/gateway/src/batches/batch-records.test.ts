import { RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { testRedis, uniqueName } from '../test-support/redis.js';
import { type BatchRecord, inState } from './batch-record.js';
import { BatchRecords } from './batch-records.js';

describe('the records of batches', () => {
  let redis: Redis;
  let records: BatchRecords;
  const clock = new RedisClock();

  before(async () => {
    redis = testRedis();
    await clock.start(redis);
    records = new BatchRecords(redis);
  });
  after(() => {
    clock.stop();
    redis.disconnect();
  });

  const newRecord = (owner: string): BatchRecord => {
    const now = clock.now();
    return {
      v: 1,
      id: uniqueName('batch'),
      owner,
      endpoint: '/v1/embeddings',
      inputFileId: 'file-none',
      completionWindow: '1h',
      createdAt: now,
      expiresAt: now + 3600_000,
      outputKeepMs: 3600_000,
      state: 'validating',
      since: { validating: now },
      checkpoint: { line: 0, end: 0, completed: 0, failed: 0, output: [], errors: [] },
      outputFileId: 'file-output',
      errorFileId: 'file-errors',
      epoch: 0,
      run: 0,
    };
  };
  const end = (id: string) => records.update(id, (before) => inState(before, 'cancelled', clock.now()));
  /** How often scripts have asked whether a list has a batch. */
  const asked = async (): Promise<number> =>
    Number(/cmdstat_zscore:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);

  it('are made at the same cost however many of an API key have ended', async () => {
    const owner = uniqueName('owner');
    const made = Array.from({ length: 500 }, () => newRecord(owner));
    for (const record of made) {
      await records.create(record, 100);
      await end(record.id);
    }
    const before = await asked();
    const last = newRecord(owner);
    expect(await records.create(last, 1)).to.equal(true);
    expect((await asked()) - before).to.be.below(100);
    await end(last.id);
  });

  it('are as many as may be open of one API key, whatever others have', async () => {
    const [one, other] = [uniqueName('owner'), uniqueName('owner')];
    const made = [newRecord(one), newRecord(one), newRecord(other)];
    for (const record of made) expect(await records.create(record, 2)).to.equal(true);
    const refused = await records.create(newRecord(one), 2).catch((error: { code: string }) => error.code);
    expect(refused).to.equal('job_limit');
    for (const { id } of made) await end(id);
    const again = newRecord(one);
    expect(await records.create(again, 2)).to.equal(true);
    await end(again.id);
  });
});
