import { BULL_PREFIX, createLogger, PRIORITIES, RedisClock } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import { useRedis } from '../test-support/redis.js';
import { Aging } from './aging.js';
import { JobConsumer } from './job-consumer.js';

describe('aging', () => {
  const redis = useRedis();

  it('lets what has waited long go on as interactive, a few jobs of each class at a time', async () => {
    const connection = await redis.connect();
    const name = '{aging@1}';
    const queue = new Queue(name, { connection, prefix: BULL_PREFIX });
    const consumer = new JobConsumer(name, connection, {
      onLocksLost: () => undefined,
      onError: () => undefined,
    });
    const clock = new RedisClock();
    await clock.start(connection);
    redis.after(async () => {
      clock.stop();
      await consumer.close();
      await queue.close();
    });
    const add = (jobId: string, priority: number, ageMs: number) =>
      queue.add('infer', {}, { jobId, priority, timestamp: Math.round(clock.now() - ageMs) });
    for (const [i, ageMs] of [9000, 8000, 7000].entries()) await add(`bulk-${i}`, PRIORITIES.bulk, ageMs);
    await add('normal-0', PRIORITIES.normal, 6000);
    await add('normal-1', PRIORITIES.normal, 100);
    await add('fresh', PRIORITIES.interactive, 0);
    const order = async (): Promise<string[]> =>
      (await queue.getJobs(['prioritized'], 0, -1, true)).map((job) => job.id ?? '');
    expect(await order()).to.deep.equal(['fresh', 'normal-0', 'normal-1', 'bulk-0', 'bulk-1', 'bulk-2']);

    const aging = new Aging({
      consumer,
      clock,
      agingMs: 5000,
      jobsPerSecond: () => 20,
      logger: createLogger('silent', {}),
    });
    await aging.raise();
    expect(await order()).to.deep.equal(['fresh', 'normal-0', 'bulk-0', 'bulk-1', 'normal-1', 'bulk-2']);
    const raised = await consumer.fetch(1);
    expect(raised[0]?.job.id).to.equal('fresh');
    expect((await consumer.fetch(1))[0]?.job.priority).to.equal(PRIORITIES.interactive);
  });
});
