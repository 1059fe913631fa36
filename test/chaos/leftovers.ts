import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { BULL_PREFIX } from '@millrace/shared';
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
}

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
  for (const key of await allKeys(redis)) {
    if (key.startsWith(`${BULL_PREFIX}:`)) left.push(...(await lookAtQueueKey(redis, key, settled)));
    else if (!key.startsWith('{mr-registry}:')) left.push(...(await lookAtLife(redis, key, lives)));
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
  { longestWaitMs, idempotencyKeepMs }: KeyLives,
): Promise<string[]> {
  const limits: Record<string, number> = {
    'mr-reply': longestWaitMs + 10_000,
    'mr-payload': longestWaitMs + 60_000,
    'mr-cancel': longestWaitMs + 10_000,
    'mr-marker': longestWaitMs + 60_000,
    'mr-idempotency': longestWaitMs + idempotencyKeepMs,
  };
  const limit = limits[key.slice(0, key.indexOf(':'))];
  if (limit === undefined) return [`the key ${key}, which nothing is known of`];
  const ttl = await redis.pttl(key);
  if (ttl === -1) return [`the key ${key}, which never expires`];
  // A second for what clocks and rounding differ by.
  return ttl > limit + 1000 ? [`the key ${key}, which expires only in ${ttl} ms`] : [];
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
