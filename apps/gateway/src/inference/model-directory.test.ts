import {
  ANNOUNCEMENT_TTL_MS,
  announce,
  createLogger,
  gatewayMetrics,
  RedisClock,
  withdraw,
} from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { textModel } from '../test-support/models.js';
import { testRedis, until } from '../test-support/redis.js';
import { ModelDirectory } from './model-directory.js';

/** No other test's workers are announced there. */
const DATABASE = 15;

describe('the models that are served', () => {
  const model = textModel('lapsing');
  const each = model.cost?.sessions ?? 1;
  let redis: Redis;
  let directory: ModelDirectory;
  let aheadMs: number;

  class SteeredClock extends RedisClock {
    override now(): number {
      return super.now() + aheadMs;
    }
  }
  const announced = (id: string): Promise<void> =>
    announce(
      redis,
      { id, host: 'h', pid: 1, state: 'serving', contractVersions: [1], startedAt: 0, models: [model] },
      new RedisClock().now(),
    );

  beforeEach(async () => {
    redis = testRedis();
    await redis.select(DATABASE);
    aheadMs = 0;
    directory = new ModelDirectory(
      redis,
      new SteeredClock(),
      [],
      gatewayMetrics(),
      createLogger('silent', {}),
    );
    await Promise.all(['a', 'b'].map(announced));
    await directory.refresh();
    expect(directory.sessions(model)).to.equal(2 * each);
  });
  afterEach(async () => {
    await redis.flushdb();
    redis.disconnect();
  });

  it('are believed for a moment when all announcements lapse at once, as after an outage of Redis', async () => {
    aheadMs = ANNOUNCEMENT_TTL_MS + 1000;
    await directory.refresh();
    expect(directory.isServed(model)).to.equal(true);
    expect(directory.sessions(model)).to.equal(2 * each);
    aheadMs = 0;
    await directory.refresh();
    expect(directory.isServed(model)).to.equal(true);
  });

  it('are not served any more when nobody announces himself again', async () => {
    aheadMs = ANNOUNCEMENT_TTL_MS + 1000;
    await until('they are given up', async () => {
      await directory.refresh();
      return !directory.isServed(model);
    });
    await directory.refresh();
    expect(directory.isServed(model)).to.equal(false);
  });

  it('lose at once a worker that is missing among others, and those that withdrew', async () => {
    await withdraw(redis, 'a');
    await directory.refresh();
    expect(directory.sessions(model)).to.equal(each);
    await withdraw(redis, 'b');
    await directory.refresh();
    expect(directory.isServed(model)).to.equal(false);
  });
});
