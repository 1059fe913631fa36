import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import {
  type FaultyOptions,
  faultyAnswers,
  faultyModels,
  faultyTensors,
} from '../test-support/faulty-model.js';
import { until } from '../test-support/redis.js';
import { metricOf, useWorkers } from '../test-support/workers.js';

describe('work that waits behind a long run', function () {
  this.timeout(60_000);
  const workers = useWorkers();

  async function serve(options: FaultyOptions) {
    const models = await faultyModels(options);
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const worker = await workers.worker(models);
    const busy = () => metricOf(worker, 'millrace_worker_sessions_busy');
    const settled = (outcome: string) =>
      metricOf(worker, 'millrace_worker_items_total', `outcome="${outcome}"`);
    return { gateway, busy, settled };
  }

  it('never starts past its deadline, wherever it waits, and is counted', async () => {
    const { gateway, busy, settled } = await serve({});
    const long = gateway.predict(faultyTensors({ value: 1, spins: 2_000_000 }));
    await until(async () => (await busy()) === 1);
    const deadlineAt = Date.now() + 300;
    const late = Array.from({ length: 60 }, (_, i) =>
      gateway.predict(faultyTensors({ value: i }), { deadlineAt }),
    );
    for (const { header, outputs } of await Promise.all(late)) {
      expect(header.items).to.deep.equal([{ status: 'expired' }]);
      expect(header.stamps.inferred).to.equal(undefined);
      expect(outputs).to.deep.equal([]);
    }
    expect(faultyAnswers((await long).outputs)).to.deep.equal([1]);
    expect(await settled('expired')).to.equal(60);
    expect(await settled('ok')).to.equal(1);
  });

  it('is dropped from the session’s own slot too when its deadline passes or its client leaves, not its mate', async () => {
    // Predicted to be long, the next batch waits in the slot while one runs.
    const { gateway, busy, settled } = await serve({ simulate: { runMs: 300, itemMs: 20 } });
    const first = gateway.predict(faultyTensors({ value: 1 }));
    await until(async () => (await busy()) === 1);
    const [late, left, mate] = [randomUUID(), randomUUID(), randomUUID()];
    const part = (requestId: string, deadlineAt: number) =>
      gateway.job(faultyTensors({ value: 2 }), { requestId, deadlineAt }).parts;
    const soon = Date.now() + 100;
    const later = soon + 20_000;
    const parts = [...part(late, soon), ...part(left, later), ...part(mate, later)];
    const dropped = [gateway.expect(late), gateway.expect(left)];
    const answered = gateway.send({ ...gateway.job(faultyTensors({ value: 0 })), parts }, mate);
    await until(async () => (await gateway.queue.getActiveCount()) === 2);
    await gateway.cancel(left);
    expect(faultyAnswers((await answered).outputs)).to.deep.equal([2]);
    const replies = await Promise.all(dropped);
    expect(replies.map(({ header }) => header.items)).to.deep.equal([
      [{ status: 'expired' }],
      [{ status: 'cancelled' }],
    ]);
    expect(replies.map(({ header }) => header.stamps.inferred)).to.deep.equal([undefined, undefined]);
    expect(faultyAnswers((await first).outputs)).to.deep.equal([1]);
    expect([await settled('expired'), await settled('cancelled')]).to.deep.equal([1, 1]);
  });
});
