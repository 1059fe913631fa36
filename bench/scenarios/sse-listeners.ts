import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FromListeners, ToListeners } from '../load/event-listeners.js';
import { Child } from '../run/child.js';
import { CpuTimes } from '../run/proc.js';
import { residentMb, Sampler } from '../run/samples.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { median } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { IDENTITY } from '../serve/identity.js';
import { type Served, serve } from '../serve/millrace.js';
import { ScheduledJobs } from '../serve/scheduled-jobs.js';

const LISTENERS = 10_000;
/** Descriptors that a process has open besides. */
const OTHER_DESCRIPTORS = 200;
/** Jobs that all listen for together, on one side; on the other each listens for one of its own. */
const FEW_JOBS = 10;
/** Jobs that end a second where there are many; of the few, one. */
const ENDS_PER_SECOND = 200;
const SETTLE_MS = 2000;
const LAST_RECEIPT_MS = 15_000;
/** What one listener may take of the gateway's memory, what an event may take to it, what may hold up the gateway. */
const MOST_KB = 50;
const MOST_DELAY_MS = 250;
const MOST_STALL_MS = 100;
const STALL = 'millrace_event_loop_delay_seconds';
const HEAP = 'nodejs_heap_size_used_bytes';

export const sseListeners: Scenario = {
  name: 'sse-listeners',
  summary: `${LISTENERS} listeners for events of jobs, each of its own or of ${FEW_JOBS}: memory, delay, stall (limit / found)`,
  async run(bench) {
    const listeners = bench.options.listeners ?? LISTENERS;
    requireDescriptors(listeners);
    const tally = new Tally();
    const sides = [
      { name: 'a job each', jobs: listeners, perSecond: ENDS_PER_SECOND },
      { name: `${FEW_JOBS} jobs`, jobs: FEW_JOBS, perSecond: 1 },
    ];
    await interleave(
      bench.options.rounds,
      sides.map((side) => () => measure(bench, tally, side, listeners)),
    );
    const worst = (figure: string): number =>
      Math.max(...sides.map(({ name }) => median(tally.values(name, figure))));
    return tally.outcome(
      [
        { name: `${MOST_KB} KB / memory a listener`, ratio: MOST_KB / worst('rssKb'), bar: 1 },
        { name: `${MOST_DELAY_MS} ms / p99 of the delay`, ratio: MOST_DELAY_MS / worst('p99Ms'), bar: 1 },
        { name: `${MOST_STALL_MS} ms / stall`, ratio: MOST_STALL_MS / worst('stallMs'), bar: 1 },
      ],
      { listeners },
    );
  },
};

interface SideOptions {
  name: string;
  jobs: number;
  perSecond: number;
}

async function measure(bench: Bench, tally: Tally, side: SideOptions, listeners: number): Promise<void> {
  // Anew each time: what was freed by the last listeners would be used by the next, and not be seen.
  const served = await serve(bench, {
    models: [IDENTITY.name],
    env: {
      MILLRACE_MAX_CONNECTIONS: String(listeners + OTHER_DESCRIPTORS),
      MILLRACE_MAX_JOBS_PER_KEY: String(side.jobs + 1),
      MILLRACE_MAX_QUEUED_ITEMS: String(side.jobs + 1),
    },
  });
  const jobs = await ScheduledJobs.open(bench, served.redisUrl);
  const clients = new Child<ToListeners, FromListeners>('listeners.js');
  bench.own(() => clients.stop());
  const ids = await jobs.send(served.url, side.jobs);
  await sleep(SETTLE_MS);
  const before = await memoryOf(served);
  const opening = new Sampler(500, async () => ({ stall: await gatewayMetric(served, STALL) }));
  const began = performance.now();
  await clients.ask({ type: 'open', url: served.url, jobs: ids, listeners }, 'opened');
  tally.figure(side.name, 'openSeconds', (performance.now() - began) / 1000);
  await sleep(SETTLE_MS);
  tally.figure(side.name, 'openStallMs', 1000 * Math.max(...((await opening.stop()).stall?.values ?? [])));
  const after = await memoryOf(served);
  tally.figure(side.name, 'rssKb', ((after.rssMb - before.rssMb) * 1000) / listeners);
  tally.figure(side.name, 'heapKb', ((after.heapMb - before.heapMb) * 1000) / listeners);

  const idle = CpuTimes.now();
  await sleep(bench.options.seconds * 1000);
  const { gateway = 0, redis = 0 } = CpuTimes.now().since(idle, served.pids);
  tally.figure(side.name, 'idleCpuPercent', gateway / (bench.options.seconds * 10));
  tally.figure(side.name, 'idleRedisPercent', redis / (bench.options.seconds * 10));

  const ending = new Sampler(500, async () => ({ stall: await gatewayMetric(served, STALL) }));
  const { result: ended, othersShare } = await bench.watch(() => endSome(bench, jobs, ids, side));
  tally.watched(othersShare);
  const delays = await delaysOf(clients, jobs, ended, listeners / side.jobs, tally, side.name);
  await sleep(1000);
  tally.figure(side.name, 'stallMs', 1000 * Math.max(...((await ending.stop()).stall?.values ?? [])));
  tally.figure(side.name, 'p50Ms', quantile(delays, 0.5));
  tally.figure(side.name, 'p99Ms', quantile(delays, 0.99));
  bench.say(
    `  ${side.name}: ${delays.length} events heard, p50 ${quantile(delays, 0.5).toFixed(0)} ms, p99 ${quantile(delays, 0.99).toFixed(0)} ms`,
  );
  await clients.ask({ type: 'close' }, 'closed');
  await clients.stop();
  await served.stop();
}

/** Lets jobs run at a steady rate. @returns which. */
async function endSome(
  bench: Bench,
  jobs: ScheduledJobs,
  ids: readonly string[],
  { perSecond }: SideOptions,
): Promise<string[]> {
  const some = ids.slice(0, Math.min(ids.length, Math.ceil(perSecond * bench.options.seconds)));
  const began = performance.now();
  for (const [i, id] of some.entries()) {
    await sleep(Math.max(0, began + (i * 1000) / perSecond - performance.now()));
    await jobs.run(id);
  }
  return some;
}

/** From a worker's answer to the receipt of the event, for each listener of the jobs that ended, in ms. */
async function delaysOf(
  clients: Child<ToListeners, FromListeners>,
  jobs: ScheduledJobs,
  ended: readonly string[],
  listenersPerJob: number,
  tally: Tally,
  side: string,
): Promise<number[]> {
  const expected = ended.length * listenersPerJob;
  const heard: { job: string; at: number }[] = [];
  const deadline = performance.now() + LAST_RECEIPT_MS;
  let lost = 0;
  while (heard.length < expected && performance.now() < deadline) {
    await sleep(200);
    const told = await clients.ask({ type: 'receipts' }, 'receipts');
    heard.push(...told.ends);
    lost = told.lost;
  }
  if (heard.length < expected)
    tally.fault(`${side}: ${expected - heard.length} listeners did not hear the end`);
  if (lost > 0) tally.fault(`${side}: ${lost} listeners lost their connection`);
  const repliedAt = new Map<string, number>();
  for (const id of ended) repliedAt.set(id, await jobs.repliedAt(id));
  return heard
    .map(({ job, at }) => Math.max(0, at - (repliedAt.get(job) ?? Number.NaN)))
    .sort((a, b) => a - b);
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

async function memoryOf(served: Served): Promise<{ rssMb: number; heapMb: number }> {
  const heapMb = (await gatewayMetric(served, HEAP)) / 1e6;
  return { rssMb: residentMb(served.pids.gateway ?? 0), heapMb };
}

async function gatewayMetric({ url }: Served, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

/** @throws Error that says what to type, where a process may not open so many connections. */
function requireDescriptors(listeners: number): void {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const [, hard] = /^Max open files\s+\S+\s+(\S+)/m.exec(limits) ?? [];
  // Node.js raises its own limit to the hard one.
  const most = hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
  const needed = listeners + OTHER_DESCRIPTORS;
  if (most < needed) {
    throw new Error(
      `${listeners} listeners take ${needed} file descriptors in one process, and ${hard} are allowed. Raise the limit (ulimit -Hn ${needed} as root), or listen with fewer: --listeners ${most - OTHER_DESCRIPTORS}.`,
    );
  }
}
