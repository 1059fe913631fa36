import { createHash } from 'node:crypto';
import { BULL_PREFIX, connectRedis, queueName } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import { type FaultyItem, FOREVER, faultyInput, faultyModels } from '#worker/test-support/faulty-model.js';
import type { TestModels } from '#worker/test-support/models.js';
import { predict, until } from './support/client.js';
import { Cluster, type ClusterProcess } from './support/cluster.js';
import { MillraceRunner } from './support/millrace-process.js';

const DEADLINE_MS = 30_000;
const GROUP = 8;
const HANGS_AT = 5;

/** Input of one hung item, as it is hashed: its tensors in the order of their names. */
function hashOf(value: number): string {
  const [elements, index, spins] = [0n, 0n, BigInt(FOREVER)];
  return createHash('sha256')
    .update(new Uint8Array(BigInt64Array.of(elements, index, spins, BigInt(value)).buffer))
    .digest('hex');
}

describe('an input that hangs the model', function () {
  this.timeout(90_000);
  let models: TestModels;
  let cluster: Cluster;
  const deaths: (number | NodeJS.Signals)[] = [];
  let over = false;

  /** Starts another worker for each that ends, as a supervisor does. */
  function keepUp(worker: ClusterProcess): void {
    void worker.ended.then(async (how) => {
      if (over) return;
      deaths.push(how);
      keepUp(await cluster.addWorker());
    });
  }

  before(async () => {
    models = await faultyModels({
      session: { threads: 2 },
      batching: { planner: 'padding', windowMs: 20, closeEarly: 'never' },
    });
    cluster = await Cluster.start({
      models: [models.name],
      workers: 2,
      env: {
        MILLRACE_MODELS_DIR: models.modelsDir,
        MILLRACE_MAX_RUN_MS: '1000',
        MILLRACE_LOG_LEVEL: 'silent',
      },
    });
    for (const worker of cluster.workers) keepUp(worker);
  });
  beforeEach(() => void deaths.splice(0));
  after(async () => {
    over = true;
    await cluster?.stop();
    await models?.remove();
  });

  /** Failed jobs' reasons, as the dashboard shows them. */
  async function failures(): Promise<string[]> {
    const connection = connectRedis(cluster.redis.url, 'worker', 'test');
    const queue = new Queue(queueName(models.name, '1'), { connection, prefix: BULL_PREFIX });
    try {
      return (await queue.getFailed()).map((job) => job.failedReason);
    } finally {
      await queue.close();
      connection.disconnect();
    }
  }

  it('costs three workers their life when it was in a group, and nobody else an answer', async () => {
    const inputs = Array.from({ length: GROUP }, (_, i) =>
      faultyInput({ value: 100 + i, spins: i === HANGS_AT ? FOREVER : 0 }),
    );
    const hung = predict(cluster.url, models.name, inputs, { partial: true, waitMs: DEADLINE_MS });
    const beside = Array.from({ length: 20 }, (_, i) =>
      predict(cluster.url, models.name, faultyInput({ value: i }), { waitMs: DEADLINE_MS }),
    );
    expect((await Promise.all(beside)).map(({ outputs }) => outputs[0])).to.deep.equal(
      beside.map((_, i) => ({ answer: [i] })),
    );
    const answer = await hung;
    expect(answer.outputs).to.deep.equal(
      inputs.map((_, i) => (i === HANGS_AT ? null : { answer: [100 + i] })),
    );
    expect(answer.errors?.map(({ index, code }) => ({ index, code }))).to.deep.equal([
      { index: HANGS_AT, code: 'item_quarantined' },
    ]);
    expect(deaths).to.deep.equal(['SIGKILL', 'SIGKILL', 'SIGKILL']);
    // A job is settled after its reply has gone out.
    await until(async () => (await failures()).length > 0);
    const [kept, ...others] = await failures();
    expect(others).to.deep.equal([]);
    expect(kept)
      .to.contain('item_quarantined')
      .and.contain(hashOf(100 + HANGS_AT));
  });

  it('costs two when it was alone from the first', async () => {
    const input = faultyInput({ value: 7, spins: FOREVER });
    const refused = await predict(cluster.url, models.name, input, { waitMs: DEADLINE_MS }).catch(
      (error: unknown) => error,
    );
    expect(refused).to.include({ status: 500, code: 'item_quarantined' });
    expect(deaths).to.deep.equal(['SIGKILL', 'SIGKILL']);
    const after = await predict(cluster.url, models.name, faultyInput({ value: 8 }));
    expect(after.outputs).to.deep.equal([{ answer: [8] }]);
  });
});

describe('a run that outlasts the grace of a worker that is told to stop', function () {
  this.timeout(60_000);

  it('is ended with it and done elsewhere, as is what waited behind it', async () => {
    const models = await faultyModels();
    const cluster = await Cluster.start({
      models: [models.name],
      env: { MILLRACE_MODELS_DIR: models.modelsDir, MILLRACE_GRACE_MS: '300' },
    });
    try {
      const ask = (item: FaultyItem) =>
        predict(cluster.url, models.name, faultyInput(item), { waitMs: DEADLINE_MS });
      const [worker] = cluster.workers;
      // Some seconds.
      const long = ask({ value: 1, spins: 2_000_000 });
      await until(async () => {
        const text = await (await fetch(`${worker?.url}/metrics`)).text();
        return /^millrace_worker_sessions_busy\{.*\} 1$/m.test(text);
      });
      const behind = Array.from({ length: 10 }, (_, i) => ask({ value: i }));
      await cluster.addWorker();
      worker?.kill('SIGTERM');
      expect(await worker?.ended).to.equal('SIGKILL');
      const answers = await Promise.all([long, ...behind]);
      expect(answers.map(({ outputs }) => outputs[0])).to.deep.equal(
        [1, ...behind.keys()].map((value) => ({ answer: [value] })),
      );
    } finally {
      await cluster.stop();
      await models.remove();
    }
  });
});

describe('an input that hangs the only worker of `millrace up`', function () {
  this.timeout(90_000);
  const runner = new MillraceRunner();
  after(() => runner.clean());

  it('is quarantined, and the worker is brought back each time', async () => {
    const models = await faultyModels();
    const millrace = runner.run({
      args: ['up', '--models', models.name, '--models-dir', models.modelsDir, '--port', '0'],
      env: {
        MILLRACE_DATA_DIR: await runner.folder(),
        MILLRACE_MAX_RUN_MS: '1000',
        MILLRACE_LOG_LEVEL: 'silent',
      },
    });
    const [, url = ''] = await millrace.says(/(http:\/\/127\.0\.0\.1:\d+)/);
    await millrace.says(/Stop/);
    const inputs = [1, 2, 3].map((value) => faultyInput({ value, spins: value === 2 ? FOREVER : 0 }));
    const answer = await predict(url, models.name, inputs, { partial: true, waitMs: DEADLINE_MS });
    expect(answer.outputs).to.deep.equal([{ answer: [1] }, null, { answer: [3] }]);
    expect(answer.errors?.map(({ code }) => code)).to.deep.equal(['item_quarantined']);
    expect(millrace.output()).to.match(/worker 1 \(\d+\) ended with SIGKILL; starting it again/);
    millrace.signal('SIGTERM');
    expect(await millrace.ended).to.equal(0);
    await models.remove();
  });
});
