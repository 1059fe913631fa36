import { expect } from 'chai';
import { faultyInput, faultyModels, OUT_OF_RANGE } from '#worker/test-support/faulty-model.js';
import type { TestModels } from '#worker/test-support/models.js';
import { post, predict } from './support/client.js';
import { Cluster } from './support/cluster.js';

const GROUP = 32;
const POISON_AT = 20;
/** The poisoned halves of 32 down to the culprit alone. */
const FAILED_RUNS = 32 + 16 + 8 + 4 + 2 + 1;

describe('a poison input in a group of 32', function () {
  this.timeout(120_000);
  let models: TestModels;
  let cluster: Cluster;

  before(async () => {
    // One run takes the whole list.
    models = await faultyModels({ batching: { planner: 'padding', windowMs: 20, closeEarly: 'never' } });
    cluster = await Cluster.start({
      models: [models.name],
      env: { MILLRACE_MODELS_DIR: models.modelsDir },
    });
  });
  after(async () => {
    await cluster?.stop();
    await models?.remove();
  });

  const inputs = Array.from({ length: GROUP }, (_, i) =>
    faultyInput({ value: 1000 + i, index: i === POISON_AT ? OUT_OF_RANGE : i % 4 }),
  );
  const right = inputs.map((_, i) => (i === POISON_AT ? null : { answer: [1000 + i + (i % 4)] }));

  async function itemsRun(): Promise<number> {
    const text = await (await fetch(`${cluster.workers[0]?.url}/metrics`)).text();
    return Number(/^millrace_worker_batch_items_sum\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
  }

  it('fails alone, by its index, and no sibling runs again once it is answered', async () => {
    const before = await itemsRun();
    const answer = await predict(cluster.url, models.name, inputs, { partial: true });
    expect(answer.outputs).to.deep.equal(right);
    expect(answer.errors).to.have.length(1);
    expect(answer.errors?.[0]).to.include({ index: POISON_AT, code: 'inference_failed' });
    expect((await itemsRun()) - before).to.equal(FAILED_RUNS + GROUP - 1);
  });

  it('is named to a client that takes all or nothing', async () => {
    const response = await post(`${cluster.url}/v1/models/${models.name}/predict`, { inputs });
    expect(response.status).to.equal(500);
    const text = await response.text();
    expect(text).to.contain('"inference_failed"').and.contain(`inputs[${POISON_AT}]`);
  });

  it('leaves 31 clients beside it their answers when each sent one item', async () => {
    const answers = await Promise.allSettled(inputs.map((input) => predict(cluster.url, models.name, input)));
    for (const [i, answer] of answers.entries()) {
      if (i === POISON_AT)
        expect(answer).to.have.property('reason').that.includes({ status: 500, code: 'inference_failed' });
      else expect(answer).to.deep.include({ status: 'fulfilled' });
      if (answer.status === 'fulfilled') expect(answer.value.outputs).to.deep.equal([right[i]]);
    }
  });
});
