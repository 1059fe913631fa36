import { BULL_PREFIX, type JobData, jobId, payloadKey, queueName } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../gateway.js';
import { DashboardClient } from '../test-support/dashboard-client.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until } from '../test-support/redis.js';
import type { StandInWorker } from '../test-support/stand-in-worker.js';

const PASSWORD = 'correct horse';
const ASYNC = { prefer: 'respond-async' };
/** Far longer than a test takes. */
const WAIT_MS = 60_000;

interface Job {
  id: string;
  state: string;
}

describe('a job that is removed or sent again from the dashboard', () => {
  let harness: Harness;
  let redis: Redis;
  let worker: StandInWorker;
  let gateway: Gateway;
  let dashboard: DashboardClient;
  let queue: Queue<JobData>;
  let model: string;
  let letGo: () => void;

  beforeEach(async () => {
    harness = new Harness();
    model = uniqueName('removed');
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    worker = await harness.worker(textModel(model), {
      before: ({ parameters }) => (parameters.hold === true ? held : undefined),
    });
    gateway = await harness.gateway({
      dashboardPassword: PASSWORD,
      dashboardAdmin: true,
      maxJobItems: 4,
      waitMs: WAIT_MS,
    });
    dashboard = await DashboardClient.login(gateway, PASSWORD);
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    queue = new Queue(queueName(model, '1'), { connection: redis, prefix: BULL_PREFIX });
    harness.onRelease(() => queue.close());
    await until('the model is served', async () => (await predict('here?')).status === 200);
  });
  afterEach(() => {
    letGo();
    return harness.release();
  });

  const predict = (inputs: unknown, headers: Record<string, string> = {}, parameters = {}, at = gateway) =>
    post<Job>(`${at.url}/v1/models/${model}/predict`, { inputs, parameters }, headers);
  const stateOf = async (id: string, query = ''): Promise<string> =>
    (await get<Job>(`${gateway.url}/v1/jobs/${id}${query}`)).body.state;
  const waiting = async (count: number): Promise<string[]> => {
    await until(`${count} wait`, async () => (await queue.getPrioritizedCount()) === count);
    return await queue.getRanges(['prioritized'], 0, -1, true);
  };
  const remove = (id = '') => dashboard.act(queue.name, id, 'clean');
  /** The whole dashboard, its look for models included. */
  const untilShown = () =>
    until('the queue is shown', async () => (await dashboard.page('/api/queues')).includes(queue.name));

  it('answers the client that waits, at once and with what happened', async () => {
    await untilShown();
    await worker.pause();
    const answer = predict('a');
    const [id] = await waiting(1);
    expect((await remove(id)).status).to.equal(204);
    const { status, body } = await answer;
    expect(status).to.equal(499);
    expect(body).to.include({ code: 'cancelled' });
    expect(await queue.getPrioritizedCount()).to.equal(0);
  });

  it('answers a client whose other parts still wait, and takes those back', async () => {
    await untilShown();
    await worker.pause();
    const answer = predict(Array.from({ length: 12 }, (_, i) => `text ${i}`));
    const ids = await waiting(3);
    expect((await remove(ids[1])).status).to.equal(204);
    expect((await answer).status).to.equal(499);
    await until('nothing waits', async () => (await queue.getPrioritizedCount()) === 0);
  });

  it('cancels a durable request, which all who wait for it hear at any gateway', async () => {
    await untilShown();
    const other = await harness.gateway();
    await worker.pause();
    const { body } = await predict(
      Array.from({ length: 6 }, (_, i) => `text ${i}`),
      ASYNC,
    );
    const ids = await waiting(2);
    const began = performance.now();
    const waited = get<Job>(`${other.url}/v1/jobs/${body.id}?wait=30`);
    const events = fetch(`${other.url}/v1/jobs/${body.id}/events`).then((response) => response.text());
    expect((await remove(ids[0])).status).to.equal(204);
    expect((await waited).body.state).to.equal('cancelled');
    expect(await events).to.include('event: cancelled');
    expect(performance.now() - began).to.be.below(5000);
    expect(await queue.getPrioritizedCount()).to.equal(0);
  });

  it('is refused while a worker has it, and its request is none the worse', async () => {
    await untilShown();
    const { body } = await predict('a', ASYNC, { hold: true });
    await until('a worker has it', async () => (await queue.getActiveCount()) === 1);
    const refused = await remove(jobId(body.id, 0));
    expect(refused.status).to.equal(409);
    expect(await refused.text()).to.include('JOB_IS_ACTIVE');
    letGo();
    expect(await stateOf(body.id, '?wait=10')).to.equal('done');
  });

  it('leaves what was answered as it is', async () => {
    await untilShown();
    const { body } = await predict('a', ASYNC);
    expect(await stateOf(body.id, '?wait=10')).to.equal('done');
    const id = jobId(body.id, 0);
    await until('it is completed', async () => (await queue.getJobState(id)) === 'completed');
    expect((await remove(id)).status).to.equal(204);
    expect(await queue.getJob(id)).to.equal(undefined);
    expect(await stateOf(body.id)).to.equal('done');
  });

  it('leaves no input in Redis', async () => {
    await untilShown();
    await worker.pause();
    const answer = predict('a'.repeat(20_000));
    const [id = ''] = await waiting(1);
    const input = payloadKey(queue.name, id.split('.')[0] ?? '', 0);
    expect(await redis.exists(input)).to.equal(1);
    await remove(id);
    await answer;
    expect(await redis.exists(input)).to.equal(0);
  });

  for (const [action, path] of [
    ['emptied', ['empty']],
    ['obliterated', ['obliterate']],
  ] as const) {
    it(`is answered where its whole queue is ${action}`, async () => {
      await untilShown();
      await worker.pause();
      const answers = Array.from({ length: 5 }, (_, i) => predict(`text ${i}`));
      const kept = await predict('kept', ASYNC);
      await waiting(6);
      if (action === 'obliterated') expect((await dashboard.act(queue.name, 'pause')).status).to.equal(200);
      expect((await dashboard.act(queue.name, ...path)).status).to.equal(200);
      for (const { status } of await Promise.all(answers)) expect(status).to.equal(499);
      expect(await stateOf(kept.body.id)).to.equal('cancelled');
    });
  }

  it('is answered where all that are to come are cleaned away, but those of the last seconds', async () => {
    await untilShown();
    const later = { ...ASYNC, 'millrace-not-before': new Date(Date.now() + 600_000).toISOString() };
    const old = await predict('old', later);
    const young = await predict('young', later);
    const id = jobId(old.body.id, 0);
    await redis.hset(queue.toKey(id), 'timestamp', Date.now() - 10_000);
    expect((await dashboard.act(queue.name, 'clean', 'delayed')).status).to.equal(200);
    expect(await stateOf(old.body.id)).to.equal('cancelled');
    expect(await stateOf(young.body.id)).to.equal('scheduled');
  });

  it('is not sent again without its input, and keeps the answer that it had', async () => {
    await untilShown();
    const { body } = await predict('a'.repeat(20_000), ASYNC);
    expect(await stateOf(body.id, '?wait=10')).to.equal('done');
    const id = jobId(body.id, 0);
    await until('it is completed', async () => (await queue.getJobState(id)) === 'completed');
    // As a worker does.
    await redis.unlink(payloadKey(queue.name, body.id, 0));
    const refused = await dashboard.act(queue.name, id, 'retry');
    expect(refused.status).to.equal(409);
    expect(await refused.text()).to.include('no longer stored');
    expect((await dashboard.act(queue.name, 'retry', 'completed')).status).to.equal(200);
    expect(await queue.getJobState(id)).to.equal('completed');
    expect(await stateOf(body.id)).to.equal('done');
  });
});
