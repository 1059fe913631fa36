import { randomUUID } from 'node:crypto';
import { connectRedis } from '@millrace/shared';
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
