import { gatewayMetrics, MillraceError, RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import { LineGroups } from '../lines/line-groups.js';
import type { BatchRecord } from './batch-record.js';
import type { CheckpointWriter } from './checkpoint-writer.js';
import type { BatchInput } from './input.js';
import { LineRun } from './line-run.js';

const LINES = 50_000;
const BATCH = { id: 'batch_1', checkpoint: { line: 0, end: 0 }, endpoint: '/v1/embeddings' };

describe('LineRun', () => {
  it('lets others have their turn between lines of which none waits for anything', async () => {
    const clock = new RedisClock();
    let added = 0;
    const run = new LineRun(BATCH as BatchRecord, {
      input: {
        async *bytes() {
          yield Buffer.alloc(LINES, '\n');
        },
      } as unknown as BatchInput,
      readLine: () => {
        throw new MillraceError('invalid_json');
      },
      groups: new LineGroups({
        infer: () => Promise.reject(new Error('nothing is to be run')),
        clock,
        tenant: 'nobody',
        priority: 'bulk',
        mostItems: () => 32,
      }),
      writer: {
        room: async () => undefined,
        add: () => {
          added += 1;
        },
      } as unknown as CheckpointWriter,
      clock,
      metrics: gatewayMetrics(),
      mostItems: 256,
      groupItems: 32,
      mostLineBytes: 1000,
    });
    let turns = 0;
    let counting = setImmediate(function count() {
      turns += 1;
      counting = setImmediate(count);
    });
    try {
      await run.run();
    } finally {
      clearImmediate(counting);
    }
    expect(added).to.equal(LINES);
    // It takes hundreds of ms, of which a turn takes a few.
    expect(turns).to.be.above(10);
  });
});
