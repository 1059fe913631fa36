import { expect } from 'chai';
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
});
