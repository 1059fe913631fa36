import { randomUUID } from 'node:crypto';
import { BULL_PREFIX, connectRedis } from '@millrace/shared';
import type { Redis } from 'ioredis';

/** The Redis that tests use; they keep out of each other's way by model names of their own. */
export function testRedisUrl(): string {
  const url = process.env.MILLRACE_TEST_REDIS_URL;
  if (!url) {
    throw new Error(
      'Set MILLRACE_TEST_REDIS_URL to a Redis that tests may write to, e.g. redis://127.0.0.1:6399',
    );
  }
  return url;
}

export function testRedis(name = 'test'): Redis {
  return connectRedis(testRedisUrl(), 'worker', name);
}

export function uniqueName(prefix: string): string {
  return `${prefix}-${randomUUID().slice(0, 8)}`;
}

/** Jobs that wait in a queue, stalled ones included. */
export async function waitingJobs(redis: Redis, queue: string): Promise<number> {
  const [prioritized, wait] = await Promise.all([
    redis.zcard(`${BULL_PREFIX}:${queue}:prioritized`),
    redis.llen(`${BULL_PREFIX}:${queue}:wait`),
  ]);
  return prioritized + wait;
}

/** Breaks the connections of every gateway that have this name; they come back by themselves. */
export async function killConnections(redis: Redis, name: string): Promise<void> {
  const clients = String(await redis.client('LIST')).split('\n');
  for (const client of clients) {
    const id = / name=(\S+) /.exec(client)?.[1] === name ? /^id=(\d+)/.exec(client)?.[1] : undefined;
    if (id !== undefined) await redis.client('KILL', 'ID', id);
  }
}

/** Waits until a condition holds; fails after `timeoutMs` saying what was waited for. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  timeoutMs = 8000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
