import { PRIORITIES, type Settings } from '@millrace/shared';
import { expect } from 'chai';
import { faultyAnswers, faultyModels, faultyTensors } from '../test-support/faulty-model.js';
import { until } from '../test-support/redis.js';
import { metricOf, useWorkers } from '../test-support/workers.js';

/** Long beside everything else, so that what is counted in runs does not depend on the machine. */
const RUN_MS = 150;
const BULK_JOBS = 60;

describe('bulk work beside interactive work', function () {
  this.timeout(60_000);
  const workers = useWorkers();

  async function serve(settings: Partial<Settings> = {}, batching = {}) {
    const simulate = { runMs: RUN_MS, itemMs: 1 };
    const models = await faultyModels({ batching, simulate, session: { threads: 2 } });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const worker = await workers.worker(models, settings);
    const busy = () => metricOf(worker, 'millrace_worker_sessions_busy');
    let answered = 0;
    /** Adds bulk jobs of one item each; counts those that are answered. */
    const addBulk = (): Promise<unknown> =>
      Promise.all(
        Array.from({ length: BULK_JOBS }, async (_, i) => {
          const { outputs } = await gateway.predict(faultyTensors({ value: i }), {
            priority: PRIORITIES.bulk,
            deadlineAt: Date.now() + 60_000,
          });
          expect(faultyAnswers(outputs)).to.deep.equal([i]);
          answered += 1;
        }),
      );
    const interactive = async (value: number): Promise<void> => {
      const { outputs } = await gateway.predict(faultyTensors({ value }));
      expect(faultyAnswers(outputs)).to.deep.equal([value]);
    };
    /** Interactive work that comes and runs nowhere, for its time is over. */
    const lateInteractive = async (): Promise<void> => {
      const { header } = await gateway.predict(faultyTensors({ value: 0 }), { deadlineAt: Date.now() - 1 });
      expect(header.items[0]?.status).to.equal('expired');
    };
    return { busy, addBulk, interactive, lateInteractive, answered: () => answered };
  }

  it('has half of the sessions at most where its runs are long, and is not fetched before it', async () => {
    const { busy, addBulk, interactive, answered } = await serve();
    await interactive(1000);
    const all = addBulk();
    await until(async () => (await busy()) === 1);
    for (let i = 0; i < 5; i++) {
      const before = answered();
      await interactive(1001 + i);
      // One that ran, and one behind it, in the time of its own run.
      expect(answered() - before).to.be.at.most(2);
      expect(await busy()).to.be.at.most(1);
    }
    await all;
    expect(answered()).to.equal(BULK_JOBS);
  });

  it('has every session for runs within their bound', async () => {
    const { busy, addBulk, lateInteractive, answered } = await serve(
      { bulkRunMs: 2 * RUN_MS },
      { maxItems: 4 },
    );
    await lateInteractive();
    const all = addBulk();
    await until(async () => {
      await lateInteractive();
      return (await busy()) === 2;
    });
    await all;
    expect(answered()).to.equal(BULK_JOBS);
  });
});
