import { expect } from 'chai';
import { useBatchRecords } from '../test-support/batch-records.js';
import { uniqueName } from '../test-support/redis.js';
import { inState } from './batch-record.js';

describe('the records of batches', () => {
  const { clock, redis, records, newRecord } = useBatchRecords();
  const end = (id: string) => records().update(id, (before) => inState(before, 'cancelled', clock.now()));
  /** How often scripts have asked whether a list has a batch. */
  const asked = async (): Promise<number> =>
    Number(/cmdstat_zscore:calls=(\d+)/.exec(await redis().info('commandstats'))?.[1] ?? 0);

  it('are made at the same cost however many of an API key have ended', async () => {
    const owner = uniqueName('owner');
    const made = Array.from({ length: 500 }, () => newRecord(owner));
    for (const record of made) {
      await records().create(record, 100);
      await end(record.id);
    }
    const before = await asked();
    const last = newRecord(owner);
    expect(await records().create(last, 1)).to.equal(true);
    expect((await asked()) - before).to.be.below(100);
    await end(last.id);
  });

  it('are as many as may be open of one API key, whatever others have', async () => {
    const [one, other] = [uniqueName('owner'), uniqueName('owner')];
    const made = [newRecord(one), newRecord(one), newRecord(other)];
    for (const record of made) expect(await records().create(record, 2)).to.equal(true);
    const refused = await records()
      .create(newRecord(one), 2)
      .catch((error: { code: string }) => error.code);
    expect(refused).to.equal('job_limit');
    for (const { id } of made) await end(id);
    const again = newRecord(one);
    expect(await records().create(again, 2)).to.equal(true);
    await end(again.id);
  });
});
