import { createLogger, type Logger } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { testRedis, until } from '../test-support/redis.js';
import { RedisMemory } from './redis-memory.js';

describe("Redis's memory", () => {
  let redis: Redis;
  const told: string[] = [];
  /** Names and values in turn, as they were. */
  let before: string[];
  const logger = Object.assign(createLogger('silent', {}), {
    error: (_: object, message: string) => void told.push(message),
  }) as Logger;

  beforeEach(async () => {
    redis = testRedis();
    told.length = 0;
    before = [
      ...(await redis.config('GET', 'maxmemory')),
      ...(await redis.config('GET', 'maxmemory-policy')),
    ];
  });
  afterEach(async () => {
    await redis.config('SET', ...before);
    redis.disconnect();
  });

  const watch = async (): Promise<RedisMemory> => {
    const memory = new RedisMemory(redis, logger);
    await memory.start();
    return memory;
  };

  it('is tight near its limit, which is told, and no more when there is room again', async () => {
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
    await redis.config('SET', 'maxmemory', String(Math.round(used * 1.1)));
    const memory = await watch();
    expect(memory.tight).to.equal(true);
    expect(told).to.have.length(1);
    expect(told[0]).to.include('little memory left');
    await redis.config('SET', 'maxmemory', String(used * 10));
    await until('there is room', () => !memory.tight);
    memory.stop();
  });

  it('is loudly told of when it may throw away what waits', async () => {
    const quiet = await watch();
    expect(told).to.deep.equal([]);
    quiet.stop();
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const memory = await watch();
    expect(told).to.have.length(1);
    expect(told[0]).to.include('noeviction');
    memory.stop();
  });
});
