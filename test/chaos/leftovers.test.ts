import { BULL_PREFIX, connectRedis, payloadKey, replyKey } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { Cluster } from '../support/cluster.js';
import { lookInRedis } from './leftovers.js';

const QUEUE = '{identity@1}';
const LIVES = { longestWaitMs: 10_000, idempotencyKeepMs: 30_000 };

describe('the search for what a run left in Redis', () => {
  let cluster: Cluster;
  let redis: Redis;

  before(async () => {
    cluster = await Cluster.start({ models: [], gateways: 0, workers: 0 });
    redis = connectRedis(cluster.redis.url, 'subscriber', 'leftovers');
  });
  afterEach(() => redis.flushall());
  after(async () => {
    redis.disconnect();
    await cluster.stop();
  });

  const left = () => lookInRedis(redis, LIVES);

  it('takes what expires in time, what is kept of settled jobs and the registry', async () => {
    await redis.set(replyKey(QUEUE, 'a', 0), 'x', 'PX', 19_000);
    await redis.set(payloadKey(QUEUE, 'a', 0), 'x', 'PX', 69_000);
    await redis.zadd(`${BULL_PREFIX}:${QUEUE}:completed`, 1, 'a.0');
    await redis.hset(`${BULL_PREFIX}:${QUEUE}:a.0`, 'data', '{}');
    await redis.hset('{mr-registry}:announcements', 'w', '{}');
    expect(await left()).to.deep.equal([]);
  });

  it('finds keys that never expire or too late, and unknown ones', async () => {
    await redis.set(replyKey(QUEUE, 'a', 0), 'x');
    await redis.set(replyKey(QUEUE, 'b', 0), 'x', 'PX', 40_000);
    await redis.set('mr-idempotency:{identity@1}:k', 'x', 'PX', 60_000);
    await redis.set('stray', 'x', 'PX', 1000);
    expect(await left()).to.have.length(4);
  });

  it('finds jobs that wait or run, their locks, and jobs in no state', async () => {
    await redis.zadd(`${BULL_PREFIX}:${QUEUE}:prioritized`, 1, 'a.0');
    await redis.lpush(`${BULL_PREFIX}:${QUEUE}:active`, 'b.0');
    await redis.set(`${BULL_PREFIX}:${QUEUE}:b.0:lock`, 'token', 'PX', 3000);
    await redis.hset(`${BULL_PREFIX}:${QUEUE}:c.0`, 'data', '{}');
    expect(await left()).to.have.length(4);
  });
});
