/**
 * Load while workers die: `node test/dist/chaos/kill-workers.js [--seconds 60] [--every 5] [--clients 64]`.
 * Two workers; one of them in turn is killed by `kill -9` and started again. Every answer is compared with its
 * reference. Ends with one line, and exit code 0 only if every request got its right answer.
 */
import { parseArgs } from 'node:util';
import { Cluster, type ClusterProcess } from '../support/cluster.js';
import { askReferences, percentile, startLoad } from '../support/load.js';
import { MINILM, sampleSentences } from '../support/minilm.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    every: { type: 'string', default: '5' },
    clients: { type: 'string', default: '64' },
  },
});
const [seconds, every, clients] = [values.seconds, values.every, values.clients].map(Number) as [
  number,
  number,
  number,
];

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const cluster = await Cluster.start({ models: [MINILM], workers: 2 });
try {
  const references = await askReferences(cluster.url, MINILM, (await sampleSentences()).slice(0, 100));
  const load = startLoad([cluster.url], MINILM, references, { clients, clientTimeoutMs: 15_000 });
  const pair = [...cluster.workers] as [ClusterProcess, ClusterProcess];
  const end = performance.now() + seconds * 1000;
  let kills = 0;
  for (let victim = 0; performance.now() + every * 1000 < end; victim = 1 - victim) {
    await sleep(every * 1000);
    const worker = pair[victim as 0 | 1];
    worker.kill('SIGKILL');
    await worker.ended;
    kills++;
    console.log(`killed a worker (${kills}); ${load.sent} requests sent so far`);
    pair[victim as 0 | 1] = await cluster.addWorker();
  }
  await sleep(Math.max(0, end - performance.now()));
  const { requests, right, wrong, refused, latencies } = await load.stop();
  const others = [...refused].map(([what, n]) => `${n} x ${what}`).join(', ') || 'none';
  console.log(
    `requests ${requests}, right answers ${right}, wrong ${wrong}, without a value: ${others}; kills ${kills}; ` +
      `p50 ${percentile(latencies, 0.5).toFixed(0)} ms, p99 ${percentile(latencies, 0.99).toFixed(0)} ms, ` +
      `longest ${(latencies.at(-1) ?? 0).toFixed(0)} ms`,
  );
  process.exitCode = right === requests ? 0 : 1;
} finally {
  await cluster.stop();
}
