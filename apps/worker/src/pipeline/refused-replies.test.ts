import { type JobData, replyKey } from '@millrace/shared';
import { expect } from 'chai';
import { faultyAnswers, faultyModels, faultyTensors } from '../test-support/faulty-model.js';
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

  it('keeps no worker from ending in order, though another part of its job runs', async () => {
    const { gateway, worker, count } = await serve();
    const [first, second] = [1, 2].map((value) => gateway.job(faultyTensors({ value })));
    const parts = [...(first?.parts ?? []), ...(second?.parts ?? [])];
    const [part] = parts;
    // Not what belongs there, so that the script fails.
    const key = replyKey(gateway.queueName, part?.requestId ?? '', 0);
    await gateway.redis.hset(key, 'field', 'value');
    void gateway.send({ ...first, parts } as JobData, part?.requestId ?? '');
    await until(async () => (await count('items_total', 'ok')) === 1);
    expect(await worker.drain()).to.equal('exit');
    await gateway.redis.del(key);
  });
});
