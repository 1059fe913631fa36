import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis } from '@millrace/shared';
import { faultyModels } from '#worker/test-support/faulty-model.js';
import { askReferences, type References } from '../support/load.js';
import { descendants } from '../support/millrace-process.js';
import { MINILM, sampleSentences } from '../support/minilm.js';
import { seeded } from '../support/random.js';
import { BulkLines } from './bulk-lines.js';
import { BulkLoad } from './bulk-load.js';
import { ChaosCluster } from './chaos-cluster.js';
import { ChaosLoad, KEPT_MS } from './chaos-load.js';
import { RecordingClient } from './client.js';
import type { Fault, Scene } from './fault.js';
import type { History } from './history.js';
import { judge, type Verdict } from './judge.js';
import { descriptors, leftInRedis, leftOpen } from './leftovers.js';
import { leftInFiles } from './leftovers-files.js';
import { withPatientRedis } from './patient-redis.js';
import { Questions } from './questions.js';
import { recovery } from './recovery.js';
import { bringAbout, schedule } from './schedule.js';

const REFERENCES = 100;
/** Load before it is measured: first requests compile and connect. */
const WARM_UP_MS = 2000;
/** Load goes on after the faults until throughput is back, at most this long, in ms. */
const AFTERWARDS_MS = 10_500;
const POLL_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** What is served here runs for milliseconds. */
const MAX_RUN_MS = 2500;
const IDEMPOTENCY_KEEP_MS = 30_000;
const FILE_KEEP_MS = 24 * 3600 * 1000;
/** How long the items of a batch's lines may take, in ms, and how many of them are under way at a time. */
const LINE_MS = 600_000;
const ITEMS_UNDER_WAY = 256;
/** The batch that is under way at the end has this long to end too, in ms. */
const LAST_BATCH_MS = 180_000;

export interface ChaosPlan {
  seed: number;
  faults: readonly Fault[];
  /** How long faults are brought about, in ms. */
  faultMs: number;
  /** Load without a fault before them, in ms: the throughput to come back to. */
  calmMs: number;
  /** Requests a second. */
  rate: number;
  /** Share of requests with a deadline that a fault may outlast. */
  hurried: number;
  /** Share of requests with `Prefer: respond-async`. */
  kept: number;
  /** Lines of each of the batches that go through meanwhile, one after the other. */
  bulkLines: number;
  /** Where the log of the processes, the history and Redis's starter go. */
  folder: string;
  say(line: string): void;
}

export interface ChaosResult {
  history: History;
  verdict: Verdict;
}

/** One run: a private cluster under load and faults, and the verdict on what became of the requests. */
export async function runChaos(plan: ChaosPlan): Promise<ChaosResult> {
  await mkdir(plan.folder, { recursive: true });
  const models = await faultyModels({ beside: ['identity', MINILM] });
  const began = performance.now();
  const now = (): number => performance.now() - began;
  let cluster: ChaosCluster | undefined;
  try {
    cluster = await withPatientRedis(plan.folder, () =>
      ChaosCluster.start({
        gateways: 2,
        workers: 3,
        models: ['identity', MINILM, models.name],
        logFile: join(plan.folder, 'processes.log'),
        env: {
          MILLRACE_MODELS_DIR: models.modelsDir,
          MILLRACE_LOG_LEVEL: 'warn',
          // Three workers share the machine: one thread a model each is more than it has cores.
          MILLRACE_SESSION_THREADS: '1',
          MILLRACE_MAX_RUN_MS: String(MAX_RUN_MS),
          MILLRACE_IDEMPOTENCY_KEEP_MS: String(IDEMPOTENCY_KEEP_MS),
          MILLRACE_FILE_KEEP_MS: String(FILE_KEEP_MS),
          MILLRACE_BATCH_ITEMS: String(ITEMS_UNDER_WAY),
        },
        now,
      }),
    );
    const history = await load(plan, cluster, models.name, now);
    const excuses = Object.fromEntries(plan.faults.map((fault) => [fault.name, fault]));
    return { history, verdict: judge(history, excuses) };
  } finally {
    await cluster?.end();
    await models.remove();
  }
}

async function load(
  plan: ChaosPlan,
  cluster: ChaosCluster,
  faulty: string,
  now: () => number,
): Promise<History> {
  const history: History = {
    requests: [],
    batches: [],
    faults: [],
    deaths: cluster.deaths,
    calm: { from: 0, to: 0 },
    leftovers: [],
  };
  const references = await ask(cluster);
  // Each drawn from its own: what the load does must not depend on when faults come.
  const questions = new Questions(seeded(plan.seed), references, faulty);
  const runId = `chaos-${plan.seed}`;
  const client = new RecordingClient(history, now, () => cluster.gatewayUrls, runId);
  const bulkRandom = seeded(plan.seed + 3);
  const lines = new BulkLines(bulkRandom, new Questions(bulkRandom, references, faulty));
  const redis = connectRedis(cluster.redis.url, 'subscriber', 'chaos');
  try {
    const before = await descriptors(cluster);
    const running = new ChaosLoad(client, questions, { ...plan, random: seeded(plan.seed + 1) });
    const bulkPlan = { lines: plan.bulkLines, folder: plan.folder, runId };
    const bulk = new BulkLoad(client.calls, lines, history.batches, bulkPlan, now);
    await sleep(WARM_UP_MS);
    history.calm.from = now();
    await sleep(plan.calmMs);
    history.calm.to = now();
    const scene: Scene = { cluster, redis, client, questions, random: seeded(plan.seed + 2) };
    const planned = schedule(plan.faults, scene.random, plan.faultMs);
    await bringAbout(planned, scene, history, now, plan.say);
    const ended = now();
    while (recovery(history).problem && now() < ended + AFTERWARDS_MS) await sleep(POLL_MS);
    plan.say('the load ends; looking for what is left');
    await Promise.all([running.stop(), bulk.stop(LAST_BATCH_MS)]);
    client.close();
    history.leftovers.push(
      ...(await leftInRedis(redis, {
        longestWaitMs: LONGEST_WAIT_MS,
        idempotencyKeepMs: IDEMPOTENCY_KEEP_MS,
        keptMs: KEPT_MS,
        fileKeepMs: FILE_KEEP_MS,
        lineMs: LINE_MS,
        mostOrphans: ITEMS_UNDER_WAY * history.faults.length,
      })),
      ...(await leftInFiles(redis, cluster.filesDir)),
      ...(await leftOpen(cluster, before)),
    );
  } finally {
    redis.disconnect();
  }
  const pids = cluster.members.flatMap(({ pid }) => [pid, ...descendants(pid)]);
  history.leftovers.push(...(await cluster.stop()));
  for (const pid of pids) if (isRunning(pid)) history.leftovers.push(`the process ${pid} still runs`);
  await writeFile(join(plan.folder, 'history.json'), JSON.stringify(history));
  return history;
}

/** Answers that each sentence must get, asked for one by one before any fault. */
async function ask(cluster: ChaosCluster): Promise<References> {
  const sentences = [...new Set(await sampleSentences())].slice(0, REFERENCES);
  return await askReferences(cluster.gatewayUrls[0] ?? '', MINILM, sentences);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
