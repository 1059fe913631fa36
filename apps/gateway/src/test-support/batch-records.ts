import { RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { BatchRecord } from '../batches/batch-record.js';
import { BatchRecords } from '../batches/batch-records.js';
import { testRedis, uniqueName } from './redis.js';

/** The records of batches in the tests' Redis, and that Redis's clock, while the surrounding `describe` runs. */
export function useBatchRecords() {
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
  return {
    clock,
    redis: () => redis,
    records: () => records,
    /** Of a batch that was made just now, and may take an hour. Nothing is stored. */
    newRecord(owner: string): BatchRecord {
      const now = clock.now();
      return {
        v: 1,
        id: uniqueName('batch'),
        owner,
        endpoint: '/v1/embeddings',
        inputFileId: 'file-input',
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
    },
  };
}
