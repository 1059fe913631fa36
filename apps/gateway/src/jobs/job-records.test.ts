import { randomUUID } from 'node:crypto';
import { connectRedis, ownedJobsKeys } from '@millrace/shared';
import { expect } from 'chai';
import { testRedisUrl, uniqueName } from '../test-support/redis.js';
import { type JobRecord, ownerHash } from './job-record.js';
import { JobRecords } from './job-records.js';

describe('the records of durable requests', () => {
  const redis = connectRedis(testRedisUrl(), 'worker', 'job-records');
  after(() => redis.disconnect());

  it('count a request once, also where its counting is sent again after a lost connection', async () => {
    const records = new JobRecords(redis, { maxJobsPerKey: 10, maxJobBytesPerKey: 1000 });
    const owner = uniqueName('owner');
    const now = Date.now();
    const record = {
      v: 1,
      id: randomUUID(),
      owner,
      receivedAt: now,
      keepUntil: now + 60_000,
      bytes: 400,
    } as JobRecord;
    for (let times = 0; times < 3; times++) await records.create(record, now);
    const { total } = ownedJobsKeys(ownerHash(owner));
    expect(await redis.get(total)).to.equal('400');
    await records.drop(record);
    expect(await redis.get(total)).to.equal('0');
  });
});
