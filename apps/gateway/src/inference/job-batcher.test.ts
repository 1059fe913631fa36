import { BULL_PREFIX, cancelKey, type JobData, queueName } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

const ONE_SESSION = {
  fixed: 1,
  perItem: 0,
  perUnit: 0,
  perSquare: 0,
  correction: 1,
  capacity: 1000,
  answered: 0,
  sessions: 1,
};

describe('parts that travel together', () => {
  const harness = new Harness();
  let redis: Redis;
  before(() => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
  });
  after(() => harness.release());

  /** A gateway, and a model of one session whose jobs nobody takes unless `serves`. */
  async function setUp(serves: boolean) {
    const model = textModel(uniqueName('together'), { cost: ONE_SESSION });
    const worker = new StandInWorker(model);
    await (serves ? worker.start() : worker.announce());
    harness.onRelease(() => worker.stop());
    const gateway = await harness.gateway();
    const queue = new Queue<JobData>(queueName(model.name, '1'), { connection: redis, prefix: BULL_PREFIX });
    harness.onRelease(() => queue.close());
    const predict = (inputs: unknown, signal?: AbortSignal) =>
      fetch(`${gateway.url}/v1/models/${model.name}/predict`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ inputs }),
        ...(signal ? { signal } : {}),
      });
    const jobs = () => queue.getJobs(['prioritized'], 0, -1, true);
    const waitingItems = async () =>
      (await jobs()).flatMap((job) => job.data.parts).reduce((sum, part) => sum + part.count, 0);
    return { model, gateway, queue, predict, jobs, waitingItems };
  }

  it('share jobs once every session has work, none of them too large', async () => {
    const { predict, jobs, waitingItems } = await setUp(false);
    const abort = new AbortController();
    const sent = Array.from({ length: 80 }, (_, i) =>
      predict(`text ${i}`, abort.signal).catch(() => undefined),
    );
    await until('all wait', async () => (await waitingItems()) === 80);
    const sizes = (await jobs()).map((job) => job.data.parts.length);
    expect(sizes.length).to.be.below(40);
    expect(Math.max(...sizes)).to.be.at.most(32);
    abort.abort();
    await Promise.all(sent);
  });

  it('are answered each with its own answer', async () => {
    const { gateway, model } = await setUp(true);
    const url = `${gateway.url}/v1/models/${model.name}/predict`;
    const texts = Array.from({ length: 60 }, (_, i) => `a text with number ${i}`);
    const alone = [];
    for (const text of texts) alone.push((await post(url, { inputs: text })).body.outputs);
    const together = await Promise.all(texts.map((text) => post(url, { inputs: text })));
    expect(together.map(({ body }) => body.outputs)).to.deep.equal(alone);
  });

  it('stay when one of them is cancelled, and that one leaves a tombstone', async () => {
    const { predict, jobs, queue, waitingItems } = await setUp(false);
    const [gone, stay] = [new AbortController(), new AbortController()];
    const sent = Array.from({ length: 8 }, (_, i) =>
      predict(`text ${i}`, i === 7 ? gone.signal : stay.signal).catch(() => undefined),
    );
    await until('all wait', async () => (await waitingItems()) === 8);
    const shared = (await jobs()).filter((job) => job.data.parts.length > 1);
    expect(shared.length).to.be.above(0);
    const ids = (await jobs()).flatMap((job) => job.data.parts.map((part) => part.requestId));
    gone.abort();
    const stones = async () => {
      const found = await Promise.all(ids.map((id) => redis.exists(cancelKey(queue.name, id))));
      return found.filter((n) => n === 1).length;
    };
    await until('one is cancelled', async () => (await stones()) === 1);
    expect((await jobs()).filter((job) => job.data.parts.length > 1)).to.have.length(shared.length);
    stay.abort();
    await Promise.all(sent);
  });

  it('are added again together, without those answered or gone, when Redis forgot them', async () => {
    const { predict, jobs, queue, waitingItems } = await setUp(false);
    const [gone, stay] = [new AbortController(), new AbortController()];
    const sent = Array.from({ length: 12 }, (_, i) =>
      predict(`text ${i}`, i === 11 ? gone.signal : stay.signal).catch(() => undefined),
    );
    await until('all wait', async () => (await waitingItems()) === 12);
    const before = (await jobs()).map((job) => job.id).sort();
    await queue.obliterate({ force: true });
    gone.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until('the others wait again', async () => (await waitingItems().catch(() => 0)) === 11);
    const after = (await jobs()).map((job) => job.id).sort();
    expect(before).to.include.members(after);
    stay.abort();
    await Promise.all(sent);
  });

  it('wait for nobody while a session is idle', async () => {
    const { predict, jobs } = await setUp(false);
    const abort = new AbortController();
    const sent = [0, 1].map((i) => predict(`text ${i}`, abort.signal).catch(() => undefined));
    await until('both wait', async () => (await jobs()).length === 2);
    expect((await jobs()).map((job) => job.data.parts.length)).to.deep.equal([1, 1]);
    abort.abort();
    await Promise.all(sent);
  });
});
