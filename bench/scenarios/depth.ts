import { startPrivateRedis } from '@millrace/cli';
import { connectRedis } from '@millrace/shared';
import type { Scenario } from '../run/scenario.js';
import { median } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { DeepQueue, type QueueOp } from '../serve/queue-depth.js';

const DEPTHS = [100, 10_000, 1_000_000];
const LEAST_ROUNDS = 14;
/** Rounds before those that count: by then as many completed jobs are kept as ever are. */
const WARM_UP_ROUNDS = 6;
/** Operations of each kind in a round. */
const COUNT = 200;
/** The dearest depth may cost so many times the cheapest. */
const MOST_TIMES = 1.3;
const OPS: readonly QueueOp[] = ['add', 'fetch', 'complete', 'remove'];

export const depth: Scenario = {
  name: 'depth',
  summary:
    'Redis CPU per add, fetch, complete and remove with 100, 10,000 and 1,000,000 jobs waiting (1.4 GB)',
  async run(bench) {
    const redis = await startPrivateRedis({ dataDir: bench.dataDir, maxmemory: '3gb' });
    bench.own(() => redis.stop());
    const admin = connectRedis(redis.url, 'subscriber', 'bench-admin');
    bench.own(async () => admin.disconnect());
    // A rewrite of the append-only file in the middle would be measured with whatever runs then.
    await admin.config('SET', 'auto-aof-rewrite-percentage', '0');
    const queues: DeepQueue[] = [];
    for (const jobs of DEPTHS) {
      const queue = await DeepQueue.open(bench, redis.url, jobs);
      bench.say(`Filling a queue with ${jobs} jobs...`);
      await queue.fill((share) => bench.say(`  ${(share * 100).toFixed(0)}%`));
      queues.push(queue);
    }
    for (let round = 0; round < WARM_UP_ROUNDS; round++) {
      for (const queue of queues) await queue.measure(COUNT);
    }
    const tally = new Tally();
    const rounds = Math.max(LEAST_ROUNDS, bench.options.rounds);
    await interleave(
      rounds,
      queues.map((queue) => async () => {
        const costs = await queue.measure(COUNT);
        for (const op of OPS) tally.figure(`${queue.depth} waiting`, `${op}Us`, costs[op]);
      }),
    );
    const parts = OPS.map((op) => {
      const costs = DEPTHS.map((jobs) => median(tally.values(`${jobs} waiting`, `${op}Us`)));
      const times = Math.max(...costs) / Math.min(...costs);
      return { name: `${op}: ${MOST_TIMES} / (dearest / cheapest)`, ratio: MOST_TIMES / times, bar: 1 };
    });
    return tally.outcome(parts, { measuredRounds: rounds });
  },
};
