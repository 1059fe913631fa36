import { randomUUID } from 'node:crypto';
import { connectRedis, ownedJobsKeys } from '@millrace/shared';
import { expect } from 'chai';
import { testRedisUrl, uniqueName } from '../test-support/redis.js';
import { type JobRecord, ownerHash } from './job-record.js';
import { JobRecords } from './job-records.js';

describe('the records of durable requests', () => {
  const redis = connectRedis(testRedisUrl(), 'worker', 'job-records');
  after(() => redis.disconnect());

  const recordOf = (owner: string, receivedAt: number, keepUntil: number): JobRecord =>
    ({ v: 1, id: randomUUID(), owner, receivedAt, keepUntil, bytes: 400 }) as JobRecord;

  it('count a request once, also where its counting is sent again after a lost connection', async () => {
    const records = new JobRecords(redis, { maxJobsPerKey: 10, maxJobBytesPerKey: 1000 });
    const owner = uniqueName('owner');
    const now = Date.now();
    const record = recordOf(owner, now, now + 60_000);
    for (let times = 0; times < 3; times++) await records.create(record, now);
    const { total } = ownedJobsKeys(ownerHash(owner));
    expect(await redis.get(total)).to.equal('400');
    await records.drop(record);
    expect(await redis.get(total)).to.equal('0');
  });

  it('count those no more whose results are gone, and say when the next go', async () => {
    const records = new JobRecords(redis, { maxJobsPerKey: 10, maxJobBytesPerKey: 1000 });
    const owner = uniqueName('owner');
    const now = Date.now();
    await records.create(recordOf(owner, now, now + 60_000), now);
    const second = recordOf(owner, now + 1, now + 90_000);
    await records.create(second, now + 1);
    const third = recordOf(owner, now + 2, now + 90_000);
    const refusal = await records.create(third, now + 2).catch((error: unknown) => error);
    expect(refusal).to.have.property('code', 'job_limit');
    expect(refusal).to.have.nested.property('details.retryAfterSeconds', 60);
    await records.create(third, now + 60_000);
    const { received, until, bytes, total } = ownedJobsKeys(ownerHash(owner));
    const kept = [second.id, third.id];
    expect(await redis.zrange(received, '0', '-1')).to.deep.equal(kept);
    expect(await redis.zrange(until, '0', '-1')).to.have.members(kept);
    expect(await redis.hkeys(bytes)).to.have.members(kept);
    expect(await redis.get(total)).to.equal('800');
  });
});
