import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BULL_PREFIX,
  FILES_EXPIRY_KEY,
  jobRecordKey,
  NEWEST_JOBS_KEY,
  OPEN_BATCHES_KEY,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { ChaosCluster } from './chaos-cluster.js';

/** With all requests over, jobs of dead workers are settled and locks run out within this, in ms. */
const SETTLE_MS = 20_000;
const POLL_MS = 250;
/** Descriptors that a process may have more than right after its start: lazily opened threads and files. */
const MORE_DESCRIPTORS = 12;

/** Longest time to live that a key of each kind may have: its longest wait plus what it outlives it by, in ms. */
export interface KeyLives {
  readonly longestWaitMs: number;
  readonly idempotencyKeepMs: number;
  /** How long requests that outlive their clients are kept. */
  readonly keptMs: number;
  readonly fileKeepMs: number;
  /**
   * Lines of a batch whose gateway died are run again by the next one. What they had under way before lives for as long as
   * lines may take, in ms; so many keys at most.
   */
  readonly lineMs: number;
  readonly mostOrphans: number;
}

const DAY_MS = 24 * 3600 * 1000;
/** Batches may take a day here, and what they write is held for one more. */
const HELD_MS = 2 * DAY_MS;
/** Records of jobs and files outlive what they tell of, so that who comes late learns that it is gone. */
const JOB_GONE_MS = DAY_MS;
const FILE_GONE_MS = 7 * DAY_MS;
const BATCH_KEPT_MS = 30 * DAY_MS;

/** How much longer than its request a key of each kind lives, in ms. */
const OUTLIVES_MS: Readonly<Record<string, number>> = {
  'mr-reply': 10_000,
  'mr-payload': 60_000,
  'mr-cancel': 10_000,
  'mr-marker': 60_000,
};

/** What BullMQ keeps for each queue, whatever has gone through it. */
const QUEUE_KEYS = /^(id|meta|meta-paused|events|pc|marker|stalled-check|completed|failed)$/;
/** Where jobs are that somebody should still do something with. */
const UNSETTLED = /^(wait|active|prioritized|delayed|paused|stalled|waiting-children|repeat)$/;

/** What is still in Redis that should not be, a sentence each. Waits until there is none, but not for ever. */
export async function leftInRedis(redis: Redis, lives: KeyLives): Promise<string[]> {
  return await untilNone(() => lookInRedis(redis, lives));
}

/** One look, now. */
export async function lookInRedis(redis: Redis, lives: KeyLives): Promise<string[]> {
  const left: string[] = [];
  const settled = new Map<string, Set<string>>();
  const orphans: string[] = [];
  for (const key of await allKeys(redis)) {
    if (key.startsWith(`${BULL_PREFIX}:`)) left.push(...(await lookAtQueueKey(redis, key, settled)));
    else if (!key.startsWith('{mr-registry}:')) left.push(...(await lookAtLife(redis, key, lives, orphans)));
  }
  if (orphans.length > lives.mostOrphans) {
    left.push(`${orphans.length} keys that live longer than any request waits, such as ${orphans[0]}`);
  }
  return left;
}

async function allKeys(redis: Redis): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'COUNT', '1000');
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== '0');
  return [...keys];
}

async function lookAtQueueKey(
  redis: Redis,
  key: string,
  settled: Map<string, Set<string>>,
): Promise<string[]> {
  const [, queue, name = ''] = /^[^:]+:(\{[^}]*\}[^:]*):(.*)$/.exec(key) ?? [];
  if (queue === undefined) return [`the key ${key}, of no queue`];
  if (QUEUE_KEYS.test(name)) return [];
  if (UNSETTLED.test(name)) return [`${await redis.type(key)} ${key}: jobs that are not settled`];
  if (name.endsWith(':lock')) return [`the lock ${key}`];
  let known = settled.get(queue);
  if (!known) {
    const of = (state: string) => redis.zrange(`${BULL_PREFIX}:${queue}:${state}`, '0', '-1');
    known = new Set([...(await of('completed')), ...(await of('failed'))]);
    settled.set(queue, known);
  }
  // A job's own hash is kept as long as it is listed among the completed or failed ones.
  return known.has(name) ? [] : [`the job ${key}, in no state`];
}

async function lookAtLife(
  redis: Redis,
  key: string,
  { longestWaitMs, idempotencyKeepMs, keptMs, fileKeepMs, lineMs }: KeyLives,
  orphans: string[],
): Promise<string[]> {
  // Empty, it is not there.
  if (key === OPEN_BATCHES_KEY)
    return [`the batches ${await redis.zrange(key, '0', '-1')}, which have not ended`];
  // Of what has gone these forget when its time comes, or when there are newer ones.
  if (key === FILES_EXPIRY_KEY || key === NEWEST_JOBS_KEY) return [];
  const kind = key.slice(0, key.indexOf(':'));
  const limits: Record<string, number> = {
    ...Object.fromEntries(Object.entries(OUTLIVES_MS).map(([name, ms]) => [name, longestWaitMs + ms])),
    'mr-idempotency': longestWaitMs + idempotencyKeepMs,
    'mr-job': keptMs + JOB_GONE_MS,
    'mr-jobs': keptMs + JOB_GONE_MS,
    'mr-file': fileKeepMs + FILE_GONE_MS,
    'mr-files': fileKeepMs + FILE_GONE_MS,
    'mr-file-hold': HELD_MS,
    '{mr-files}': DAY_MS,
    '{mr-batches}': BATCH_KEPT_MS,
  };
  const limit = limits[kind];
  if (limit === undefined) return [`the key ${key}, which nothing is known of`];
  const ttl = await redis.pttl(key);
  if (ttl === -1) return [`the key ${key}, which never expires`];
  // A second for what clocks and rounding differ by.
  if (ttl <= limit + 1000) return [];
  const outlivesMs = OUTLIVES_MS[kind];
  if (outlivesMs !== undefined) {
    if (ttl <= (await keptFor(redis, key)) + outlivesMs + 1000) return [];
    if (ttl <= lineMs + outlivesMs + 1000) {
      orphans.push(key);
      return [];
    }
  }
  return [`the key ${key}, which expires only in ${ttl} ms`];
}

/** How much longer the request that a key is of is kept, in ms; -Infinity for one that is not. */
async function keptFor(redis: Redis, key: string): Promise<number> {
  const [, id] = /:([0-9a-f-]{36})(?:\.\d+)?$/.exec(key) ?? [];
  const record = id === undefined ? null : await redis.get(jobRecordKey(id));
  if (record === null) return Number.NEGATIVE_INFINITY;
  return (JSON.parse(record) as { keepUntil: number }).keepUntil - Date.now();
}

/** Open descriptors of every process of the cluster, to compare with later. */
export async function descriptors(cluster: ChaosCluster): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  for (const { pid } of cluster.members) counts.set(pid, await countDescriptors(pid));
  return counts;
}

/** Processes that have far more open than at their start, now that no client is there. */
export async function leftOpen(
  cluster: ChaosCluster,
  before: ReadonlyMap<number, number>,
): Promise<string[]> {
  return await untilNone(async () => {
    // One that was started again since has no count of its own: it is held to what its kind began with.
    const usual = Math.max(...before.values());
    const left: string[] = [];
    for (const { name, pid } of cluster.members) {
      const count = await countDescriptors(pid);
      const most = (before.get(pid) ?? usual) + MORE_DESCRIPTORS;
      if (count > most)
        left.push(`${name} has ${count} descriptors open, against ${most - MORE_DESCRIPTORS} before`);
    }
    return left;
  });
}

/** Where the system doesn't show them (macOS), there is nothing to compare. */
async function countDescriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`).catch(() => [])).length;
}

async function untilNone(look: () => Promise<string[]>): Promise<string[]> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const left = await look();
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(POLL_MS);
  }
}
