import { Readable } from 'node:stream';
import { createLogger, gatewayMetrics, loadSettings, RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Files } from '../files/files.js';
import { testRedis, testRedisUrl, uniqueName } from '../test-support/redis.js';
import { type BatchState, inState } from './batch-record.js';
import { BatchRecords } from './batch-records.js';
import { BatchRunner } from './batch-runner.js';

describe('BatchRunner', () => {
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

  /** Runs a batch of two lines that comes to another state while these are being counted. */
  async function turnedWhileCounted(state: BatchState) {
    const now = clock.now();
    const id = uniqueName('batch');
    const batch = {
      v: 1 as const,
      id,
      owner: uniqueName('owner'),
      endpoint: '/v1/embeddings',
      inputFileId: 'file-input',
      completionWindow: '1h',
      createdAt: now,
      expiresAt: now + 3600_000,
      outputKeepMs: 3600_000,
      state: 'validating' as const,
      since: { validating: now },
      checkpoint: { line: 0, end: 0, completed: 0, failed: 0, output: [], errors: [] },
      outputFileId: 'file-output',
      errorFileId: 'file-errors',
      epoch: 0,
      run: 0,
    };
    await records.create(batch, 100);
    async function* input() {
      yield Buffer.from('{"custom_id": "1"}\n');
      await records.update(id, (before) => inState(before, state, clock.now()));
      yield Buffer.from('{"custom_id": "2"}\n');
    }
    const store = {
      async *list() {
        // Nothing was written.
      },
      remove: async () => undefined,
    };
    const files = {
      get: async () => ({ id: 'file-input' }),
      open: () => Readable.from(input()),
      letGo: async () => undefined,
      store,
    };
    let read = 0;
    const runner = new BatchRunner(id, {
      records,
      files: files as unknown as Files,
      infer: () => Promise.reject(new Error('nothing is to be run')),
      readLine: () => {
        read += 1;
        throw new Error('nothing is to be read');
      },
      clock,
      metrics: gatewayMetrics(),
      logger: createLogger('silent', {}),
      jobItems: () => 1,
      settings: loadSettings({}, { redisUrl: testRedisUrl() }),
    });
    const end = await runner.run();
    const { record } = await records.read(id, batch.owner);
    await records.update(id, (before) => inState(before, 'cancelled', clock.now()));
    return { end, read, record };
  }

  it('runs nothing of a batch that was taken back while its lines were counted, and says how many there are', async () => {
    const { end, read, record } = await turnedWhileCounted('cancelling');
    expect(end).to.equal('over');
    expect(read).to.equal(0);
    expect(record).to.include({ state: 'cancelled', total: 2 });
    expect(record.checkpoint).to.include({ completed: 0, failed: 0 });
  });

  it('leaves one that was paused meanwhile, counted', async () => {
    const { end, read, record } = await turnedWhileCounted('paused');
    expect(end).to.equal('over');
    expect(read).to.equal(0);
    expect(record).to.include({ state: 'paused', total: 2 });
  });
});
