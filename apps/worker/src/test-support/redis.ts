import { randomUUID } from 'node:crypto';
import { type ConnectionRole, connectRedis, Releasers, untilReady } from '@millrace/shared';
import type { Redis } from 'ioredis';

/** The test run's own Redis. */
function testRedisUrl(): string {
  const url = process.env.MILLRACE_TEST_REDIS_URL;
  if (!url) throw new Error('MILLRACE_TEST_REDIS_URL is not set: run tests by `npm test`.');
  return url;
}

/** Connections that are closed after each test of the surrounding `describe`. */
export function useRedis() {
  let releasers = new Releasers();
  afterEach(async () => {
    await releasers.release();
    releasers = new Releasers();
  });
  return {
    url: testRedisUrl,
    after: (release: () => Promise<void> | void): void => releasers.push(release),
    async connect(role: ConnectionRole = 'worker'): Promise<Redis> {
      const redis = connectRedis(testRedisUrl(), role, 'test');
      releasers.push(() => redis.disconnect());
      await untilReady(redis);
      return redis;
    },
  };
}

/** A name that no other test has. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomUUID().slice(0, 8)}`;
}

/** Resolves when `condition` holds; the test's own time limit ends the wait. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
