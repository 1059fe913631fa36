import {
  createLogger,
  type ModelDescription,
  RedisClock,
  type Tensor,
  workerMetrics,
} from '@millrace/shared';
import { expect } from 'chai';
import { type FetchedJob, JobConsumer } from '../intake/job-consumer.js';
import { readJob } from '../intake/read-job.js';
import { ReplyPublisher } from '../replies/reply-publisher.js';
import { TestGateway } from '../test-support/gateway.js';
import { uniqueName, until, useRedis } from '../test-support/redis.js';
import { Settler } from './settler.js';

const INPUT: Tensor = { name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(1) };
const PARTS = 8;

class CountingConsumer extends JobConsumer {
  completions = 0;

  override complete(job: FetchedJob): Promise<void> {
    this.completions += 1;
    return super.complete(job);
  }
}

describe('a job of several parts', () => {
  const redis = useRedis();

  it('is finished once, with the reply of the last of them', async () => {
    const connection = await redis.connect();
    const gateway = new TestGateway(uniqueName('settled'), connection);
    redis.after(() => gateway.close());
    await gateway.listen(await redis.connect('subscriber'));
    const events = { onLocksLost: () => undefined, onError: () => undefined };
    const consumer = new CountingConsumer(gateway.queueName, connection, events);
    redis.after(() => consumer.close());
    const model = { name: gateway.model, version: '1' } as ModelDescription;
    const settler = new Settler({
      model,
      queue: gateway.queueName,
      worker: 'worker-1',
      redis: connection,
      clock: new RedisClock(),
      consumer,
      publisher: new ReplyPublisher(connection),
      metrics: workerMetrics(),
      logger: createLogger('silent', {}),
    });
    const jobs = Array.from({ length: PARTS }, () => gateway.job([INPUT]));
    const parts = jobs.flatMap((job) => job.parts);
    const replies = parts.map(({ requestId }) => gateway.expect(requestId));
    await gateway.queue.add('infer', { ...jobs[0], parts }, { jobId: 'a', priority: 10 });
    const [fetched] = await consumer.fetch(1);
    if (!fetched) throw new Error('nothing was fetched');
    const job = await readJob(fetched, model, connection, Date.now());
    for (const { items } of job.parts) {
      for (const item of items) settler.settle(item, { status: 'cancelled' });
    }
    await Promise.all(replies);
    await until(() => consumer.held === 0);
    expect(await gateway.queue.getCompletedCount()).to.equal(1);
    expect(consumer.completions).to.equal(1);
  });
});
