import { type JobData, replyKey } from '@millrace/shared';
import { expect } from 'chai';
import { faultyAnswers, faultyModels, faultyTensors } from '../test-support/faulty-model.js';
import type { TestGateway } from '../test-support/gateway.js';
import { until } from '../test-support/redis.js';
import { metricOf, useWorkers } from '../test-support/workers.js';

describe('a reply that Redis does not take', function () {
  this.timeout(30_000);
  const workers = useWorkers();

  async function serve() {
    const models = await faultyModels({ simulate: { runMs: 400, itemMs: 1 }, batching: { maxItems: 1 } });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const worker = await workers.worker(models);
    const count = (name: string, label?: string) => metricOf(worker, `millrace_worker_${name}`, label);
    return { gateway, worker, count };
  }

  it('is sent again once Redis takes writes, and nothing is run again for it', async () => {
    const { gateway, count } = await serve();
    const redis = await workers.connect();
    const reply = gateway.predict(faultyTensors({ value: 7 }));
    await until(async () => (await count('sessions_busy')) === 1);
    const [, most = ''] = (await redis.config('GET', 'maxmemory')) as string[];
    await redis.config('SET', 'maxmemory', '1mb');
    try {
      await until(async () => (await count('items_total', 'ok')) === 1);
      await until(async () => /^total_error_replies:[1-9]/m.test(await redis.info('stats')));
    } finally {
      await redis.config('SET', 'maxmemory', most);
    }
    const { header, outputs } = await reply;
    expect(faultyAnswers(outputs)).to.deep.equal([7]);
    expect(header.attempt).to.equal(1);
  });

  /** A job of two parts, sent; the reply of the first can't be stored until that is mended. */
  async function sendTwo(gateway: TestGateway) {
    const [first, second] = [1, 2].map((value) => gateway.job(faultyTensors({ value })));
    const parts = [...(first?.parts ?? []), ...(second?.parts ?? [])];
    const requestId = parts[0]?.requestId ?? '';
    const key = replyKey(gateway.queueName, requestId, 0);
    // Not what belongs there, so that the script fails.
    await gateway.redis.hset(key, 'field', 'value');
    const reply = gateway.send({ ...first, parts } as JobData, requestId);
    return { reply, mend: () => gateway.redis.del(key) };
  }

  it('keeps no worker from ending in order, though another part of its job runs', async () => {
    const { gateway, worker, count } = await serve();
    const { mend } = await sendTwo(gateway);
    await until(async () => (await count('items_total', 'ok')) === 1);
    expect(await worker.drain()).to.equal('exit');
    await mend();
  });

  it('is made again, though another part of its job was answered', async () => {
    const { gateway, count } = await serve();
    const { reply, mend } = await sendTwo(gateway);
    await until(async () => (await count('items_total', 'ok')) === 2);
    await mend();
    const { header, outputs } = await reply;
    expect(faultyAnswers(outputs)).to.deep.equal([1]);
    expect(header.attempt).to.equal(2);
    await until(async () => (await gateway.queue.getCompletedCount()) === 1);
    // The other part was not run again.
    expect(await count('items_total', 'ok')).to.equal(3);
  });
});
