import { randomUUID } from 'node:crypto';
import { BULL_PREFIX, encodeFrame, payloadKey } from '@millrace/shared';
import { Worker } from 'bullmq';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { faultyAnswers, faultyModels, faultyTensors } from '../test-support/faulty-model.js';
import { until } from '../test-support/redis.js';
import { metricOf, useWorkers } from '../test-support/workers.js';

const JOBS = 400;
/** The least that is held of items that add 1 ms each, and two full runs: one that is on, one behind it. */
const WITHOUT_MORE = 20 + 2 * 32;

describe('work held ahead of the sessions', function () {
  this.timeout(60_000);
  const workers = useWorkers();

  it('is more than the least while the queue has more, so that there is more to choose from', async () => {
    const models = await faultyModels({ simulate: { runMs: 100, itemMs: 1 }, session: { threads: 1 } });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const worker = await workers.worker(models);
    const values = Array.from({ length: JOBS }, (_, i) => i);
    const answers = Promise.all(
      values.map(async (value) => {
        const { outputs } = await gateway.predict(faultyTensors({ value }), {
          deadlineAt: Date.now() + 60_000,
        });
        return faultyAnswers(outputs)[0];
      }),
    );
    await until(async () => (await metricOf(worker, 'millrace_worker_jobs_held')) > WITHOUT_MORE + 64);
    expect(await answers).to.deep.equal(values);
  });

  it('is the least where inputs are large, whatever the queue has', async () => {
    const models = await faultyModels({ simulate: { runMs: 20, itemMs: 1 }, batching: { maxItems: 2 } });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const large = 8 * 1024 * 1024;
    const answers = Array.from({ length: 100 }, async (_, value) => {
      const inputs = faultyTensors({ value });
      const data = gateway.job(inputs, { deadlineAt: Date.now() + 60_000 });
      const [part] = data.parts;
      if (!part) return;
      // What lies in Redis is small: as much as it says would take long to write.
      const key = payloadKey(gateway.queueName, part.requestId, 0);
      await gateway.redis.set(key, encodeFrame({}, inputs), 'PX', 60_000);
      part.payload = { key, bytes: large };
      const { outputs } = await gateway.send(data, part.requestId);
      expect(faultyAnswers(outputs)).to.deep.equal([value]);
    });
    await until(async () => (await gateway.queue.getPrioritizedCount()) >= 100);
    const worker = await workers.worker(models);
    let most = 0;
    const all = Promise.all(answers);
    let isDone = false;
    void all.then(() => {
      isDone = true;
    });
    await until(async () => {
      most = Math.max(most, await metricOf(worker, 'millrace_worker_jobs_held'));
      return isDone;
    });
    await all;
    // The least ahead; what runs, waits in the session's slot, or was answered and is not completed yet.
    expect(most).to.be.within(4, 40);
  });

  it('never keeps an item from its turn that has to run alone', async () => {
    const models = await faultyModels({ simulate: { runMs: 300, itemMs: 1 }, session: { threads: 1 } });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const deadlineAt = Date.now() + 60_000;
    const lost = gateway.predict(faultyTensors({ value: -1 }), { deadlineAt });
    await loseJob(gateway.queueName, await workers.connect());
    let answered = 0;
    const others = Array.from({ length: JOBS }, async (_, value) => {
      await gateway.predict(faultyTensors({ value }), { deadlineAt });
      answered += 1;
    });
    await until(async () => (await gateway.queue.getPrioritizedCount()) >= JOBS);
    await workers.worker(models);
    const { header, outputs } = await lost;
    expect(faultyAnswers(outputs)).to.deep.equal([-1]);
    expect(header.attempt).to.equal(2);
    // Those before it while it was not known to be lost, and what ran when it was.
    expect(answered).to.be.below(JOBS - 64);
    await Promise.all(others);
  });
});

/** Takes a job as a worker does that dies at once. */
async function loseJob(queue: string, connection: Redis): Promise<void> {
  const options = { connection, prefix: BULL_PREFIX, autorun: false, lockDuration: 100 };
  const dying = new Worker(queue, null, options);
  let taken = false;
  while (!taken) taken = (await dying.getNextJob(randomUUID(), { block: false })) !== undefined;
  await dying.close(true);
}
