import { Readable } from 'node:stream';
import { createLogger, gatewayMetrics, loadSettings } from '@millrace/shared';
import { expect } from 'chai';
import type { Files } from '../files/files.js';
import { useBatchRecords } from '../test-support/batch-records.js';
import { testRedisUrl, uniqueName } from '../test-support/redis.js';
import { type BatchState, inState } from './batch-record.js';
import { BatchRunner } from './batch-runner.js';

describe('BatchRunner', () => {
  const { clock, records, newRecord } = useBatchRecords();

  /** Runs a batch of two lines that comes to another state while these are being counted. */
  async function turnedWhileCounted(state: BatchState) {
    const batch = newRecord(uniqueName('owner'));
    const { id } = batch;
    await records().create(batch, 100);
    async function* input() {
      yield Buffer.from('{"custom_id": "1"}\n');
      await records().update(id, (before) => inState(before, state, clock.now()));
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
      records: records(),
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
    const { record } = await records().read(id, batch.owner);
    await records().update(id, (before) => inState(before, 'cancelled', clock.now()));
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
