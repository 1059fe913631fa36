import type { ModelDescription, Tensor } from '@millrace/shared';
import { expect } from 'chai';
import { TestGateway } from '../test-support/gateway.js';
import { uniqueName, useRedis } from '../test-support/redis.js';
import { JobConsumer } from './job-consumer.js';
import { readJob } from './read-job.js';

const INPUT: Tensor = { name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(1) };
const HOUR_MS = 3_600_000;

describe('a job that an administrator', () => {
  const redis = useRedis();

  async function queue() {
    const connection = await redis.connect();
    const gateway = new TestGateway(uniqueName('sent'), connection);
    const events = { onLocksLost: () => undefined, onError: () => undefined };
    const consumer = new JobConsumer(gateway.queueName, connection, events);
    redis.after(() => consumer.close());
    redis.after(() => gateway.close());
    const fetchOne = async () => {
      const [fetched] = await consumer.fetch(1);
      if (!fetched) throw new Error('nothing was fetched');
      return fetched;
    };
    return { connection, gateway, consumer, fetchOne };
  }

  it('promotes before its time waits in no window until then', async () => {
    const { connection, gateway, consumer, fetchOne } = await queue();
    const stamps = { received: Date.now(), enqueued: Date.now() + HOUR_MS };
    const data = gateway.job([INPUT], { stamps });
    const job = await gateway.queue.add('infer', data, { jobId: 'a', delay: HOUR_MS, priority: 10 });
    await job.promote();
    const now = Date.now();
    const fetched = await fetchOne();
    const model = { name: gateway.model, version: '1' } as ModelDescription;
    const held = await readJob(fetched, model, connection, now);
    expect(held.parts[0]?.items[0]?.enqueuedAt).to.equal(now);
    await consumer.complete(fetched);
  });

  it('looks at because it failed says why, and not where in the worker that was noticed', async () => {
    const { gateway, consumer, fetchOne } = await queue();
    await gateway.queue.add('infer', gateway.job([INPUT]), { jobId: 'a', priority: 10 });
    await consumer.fail(await fetchOne(), '1 failed. item 0: text_too_long: Too long.');
    const job = await gateway.queue.getJob('a');
    expect(job?.failedReason).to.include('text_too_long');
    expect(job?.stacktrace).to.deep.equal([]);
  });
});
