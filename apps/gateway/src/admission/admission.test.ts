import { type ModelDescription, queueName } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../gateway.js';
import { Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

/** A model whose workers say that they answer so many items a second. */
function slowModel(name: string, capacity: number): ModelDescription {
  const model = textModel(name);
  return { ...model, ...(model.cost ? { cost: { ...model.cost, capacity } } : {}) };
}

describe('admission', () => {
  const harness = new Harness();
  let redis: Redis;
  const predict = (gateway: Gateway, model: string, body: object) =>
    post(`${gateway.url}/v1/models/${model}/predict`, body);
  /** Announced again and again, as a live worker is; nobody takes its jobs. */
  const announced = async (model: ModelDescription): Promise<string> => {
    const worker = new StandInWorker(model);
    await worker.announce();
    const renewing = setInterval(() => void worker.announce().catch(() => undefined), 500);
    harness.onRelease(async () => {
      clearInterval(renewing);
      await worker.stop();
    });
    return queueName(model.name, model.version);
  };

  before(() => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
  });
  after(() => harness.release());

  it('refuses what would be answered past its deadline, and says when to come back', async () => {
    const model = uniqueName('slow');
    const queue = await announced(slowModel(model, 10));
    const gateway = await harness.gateway();
    const inputs = Array.from({ length: 40 }, (_, i) => `text ${i}`);
    const ahead = predict(gateway, model, { inputs, waitMs: 8000 });
    await until('they wait', async () => (await waitingJobs(redis, queue)) > 0);
    // 40 ahead at 10 a second: 4 s. Of 2 s, 1.7 may be spent waiting: room for 17, so 24 are too many.
    const refused = await predict(gateway, model, { inputs: 'late', waitMs: 2000 });
    expect(refused.status).to.equal(429);
    expect(refused.body.code).to.equal('overloaded');
    expect(refused.headers.get('retry-after')).to.equal('3');
    const accepted = predict(gateway, model, { inputs: 'patient', waitMs: 7000 });
    await until('it joins them', async () => (await waitingJobs(redis, queue)) === 3);
    expect((await ahead).status).to.equal(504);
    expect((await accepted).status).to.equal(504);
  });

  it('counts what other gateways have waiting', async () => {
    const model = uniqueName('shared');
    const queue = await announced(slowModel(model, 10));
    const [one, other] = [await harness.gateway(), await harness.gateway()];
    const inputs = Array.from({ length: 40 }, (_, i) => `text ${i}`);
    for (let i = 0; i < 20; i++) void predict(one, model, { inputs: inputs.slice(0, 1), waitMs: 3000 });
    await until('they wait', async () => (await waitingJobs(redis, queue)) === 20);
    await until('the other gateway refuses', async () => {
      const { status } = await predict(other, model, { inputs: 'late', waitMs: 500 });
      return status === 429;
    });
  });

  it('tries what has nobody ahead, whatever is predicted', async () => {
    const model = uniqueName('alone');
    await harness.worker(slowModel(model, 0.001));
    const gateway = await harness.gateway();
    expect((await predict(gateway, model, { inputs: 'a', waitMs: 5000 })).status).to.equal(200);
  });
});
