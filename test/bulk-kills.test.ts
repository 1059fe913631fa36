import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { faultyInput, faultyModels } from '#worker/test-support/faulty-model.js';
import type { TestModels } from '#worker/test-support/models.js';
import { createBatch, readBatch, readFileOf, untilBatchEnded, uploadLines } from './support/batches.js';
import { until } from './support/client.js';
import { Cluster, type ClusterProcess } from './support/cluster.js';

const LINES = 6000;
/** A device that takes so long an item that the kills come while it has work. */
const SIMULATE = { runMs: 0, itemMs: 3 };
/** Every so many lines one asks for nothing that can be. */
const BROKEN_EVERY = 500;

interface Entry {
  custom_id: string | null;
  line: number;
  response: { body: { outputs?: { answer: number[] }[] } } | null;
  error: { code: string } | null;
}

describe('a batch, while every process is killed once', function () {
  this.timeout(180_000);
  let models: TestModels;
  let cluster: Cluster;

  before(async () => {
    models = await faultyModels({ simulate: SIMULATE });
    cluster = await Cluster.start({
      models: [models.name],
      gateways: 2,
      workers: 2,
      appendfsync: 'always',
      env: {
        MILLRACE_MODELS_DIR: models.modelsDir,
        MILLRACE_ALLOW_SIMULATED: 'true',
        MILLRACE_LOG_LEVEL: 'silent',
      },
    });
  });
  after(async () => {
    await cluster?.stop();
    await models?.remove();
  });

  const isBroken = (number: number): boolean => number % BROKEN_EVERY === 0;
  const lineOf = (number: number): string =>
    isBroken(number)
      ? '{"custom_id": "broken'
      : JSON.stringify({
          custom_id: `line ${number}`,
          body: { inputs: [faultyInput({ value: 10 * number, index: number % 4 })] },
        });

  /** How far it is, by whichever gateway answers. */
  async function linesDone(id: string): Promise<number> {
    for (;;) {
      for (const { url } of alive) {
        const batch = await readBatch(url, id).catch(() => undefined);
        if (batch) return batch.request_counts.completed + batch.request_counts.failed;
      }
      await sleep(50);
    }
  }

  async function runs({ url }: ClusterProcess): Promise<boolean> {
    const text = await (await fetch(`${url}/metrics`)).text();
    return /^millrace_gateway_batches_running 1$/m.test(text);
  }

  let alive: ClusterProcess[] = [];

  it('is completed, each line once, in order and with its answer', async () => {
    const [first, second] = cluster.gateways;
    const [one, other] = cluster.workers;
    if (!first || !second || !one || !other) throw new Error('a cluster without processes');
    alive = [first, second];
    const text = Array.from({ length: LINES }, (_, i) => `${lineOf(i + 1)}\n`).join('');
    const fileId = await uploadLines(first.url, text);
    const { id } = await createBatch(second.url, fileId, `/v1/models/${models.name}/predict`);

    /** Kills while lines are being done, and waits until what was killed serves again. */
    const kill = async (again: () => Promise<unknown>): Promise<void> => {
      const before = await linesDone(id);
      await until(async () => (await linesDone(id)) !== before);
      await again();
    };
    const killWorker = (worker: ClusterProcess) =>
      kill(async () => {
        worker.kill('SIGKILL');
        await worker.ended;
        await cluster.addWorker();
      });
    const killGateway = (gateway: ClusterProcess) =>
      kill(async () => {
        alive = alive.filter((each) => each !== gateway);
        gateway.kill('SIGKILL');
        await gateway.ended;
        alive.push(await cluster.addGateway());
      });

    await killWorker(one);
    await kill(async () => {
      await cluster.redis.kill9();
      await cluster.redis.start();
    });
    await killWorker(other);
    const runner = (await runs(first)) ? first : second;
    await killGateway(runner);
    await killGateway(runner === first ? second : first);
    expect(await linesDone(id)).to.be.below(LINES);

    const [{ url = '' } = {}] = alive;
    const batch = await untilBatchEnded(url, id);
    expect(batch.status).to.equal('completed');
    const broken = LINES / BROKEN_EVERY;
    expect(batch.request_counts).to.deep.equal({ total: LINES, completed: LINES - broken, failed: broken });
    const entries = async (file: string | null): Promise<Entry[]> =>
      (await (await readFileOf(url, file)).text())
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Entry);
    const numbers = Array.from({ length: LINES }, (_, i) => i + 1);
    const output = await entries(batch.output_file_id);
    const answered = output.map(({ line, custom_id, response }) => [
      line,
      custom_id,
      response?.body.outputs?.[0]?.answer[0],
    ]);
    expect(answered).to.deep.equal(
      numbers
        .filter((number) => !isBroken(number))
        .map((number) => [number, `line ${number}`, 10 * number + (number % 4)]),
    );
    const failed = await entries(batch.error_file_id);
    expect(failed.map(({ line, custom_id, error }) => [line, custom_id, error?.code])).to.deep.equal(
      numbers.filter(isBroken).map((number) => [number, null, 'invalid_json']),
    );
  });
});
