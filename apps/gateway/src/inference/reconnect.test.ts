import { BULL_PREFIX, type Part } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../gateway.js';
import { Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { killConnections, testRedis, uniqueName, until, waitingJobs } from '../test-support/redis.js';
import { RedisProxy } from '../test-support/redis-proxy.js';
import { embeddingOf, StandInWorker } from '../test-support/stand-in-worker.js';

interface Prediction {
  outputs: number[][];
  code?: string;
}

describe('lost connections', () => {
  let harness: Harness;
  let redis: Redis;
  let model: string;
  const predict = (gateway: Gateway, inputs: unknown, headers = {}) =>
    post<Prediction>(`${gateway.url}/v1/models/${model}/predict`, { inputs, waitMs: 20_000 }, headers);
  const metric = async (gateway: Gateway, name: string): Promise<number> => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
  };

  beforeEach(() => {
    harness = new Harness();
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    model = uniqueName('reconnect');
  });
  afterEach(() => harness.release());

  it('loses no reply that was published while the subscription was broken', async () => {
    let count = 0;
    await harness.worker(textModel(model), {
      before: async () => {
        // Broken again and again, so that replies fall before, into and after each gap.
        if (count++ % 40 === 20) await killConnections(redis, 'millrace-gateway-replies');
      },
    });
    const gateway = await harness.gateway();
    const inputs = Array.from({ length: 300 }, (_, i) => `sentence ${i}`);
    const answers = await Promise.all(inputs.map((input) => predict(gateway, input)));
    for (const [i, { status, body }] of answers.entries()) {
      expect(status).to.equal(200);
      expect(body.outputs[0]?.[1]).to.be.closeTo(embeddingOf(inputs[i] ?? '')[1] ?? 0, 1e-6);
    }
  });

  it('reads a stored reply at the deadline when its message never came', async () => {
    await harness.worker(textModel(model), { mute: true });
    const gateway = await harness.gateway();
    const { status } = await post(`${gateway.url}/v1/models/${model}/predict`, { inputs: 'a', waitMs: 400 });
    expect(status).to.equal(200);
  });

  it('fetches a reply that is too large to be published', async () => {
    await harness.worker(textModel(model), {
      alter: (reply) => ({
        ...reply,
        header: { ...reply.header, batches: ['x'.repeat(100_000)] },
      }),
    });
    const gateway = await harness.gateway();
    expect((await predict(gateway, 'a')).status).to.equal(200);
  });

  it('adds jobs again that Redis forgot, with their side payloads', async () => {
    const silent = new StandInWorker(textModel(model));
    await silent.announce();
    harness.onRelease(() => silent.stop());
    const gateway = await harness.gateway({ maxJobItems: 2 });
    const inputs = ['short', 'y'.repeat(9000), 'other'];
    const answer = predict(gateway, inputs);
    await until('both jobs wait', async () => (await waitingJobs(redis, silent.queue)) === 2);
    const keys = await redis.keys(`*${silent.queue.replace('{', '\\{')}*`);
    expect(keys.some((key) => key.startsWith(BULL_PREFIX))).to.equal(true);
    await redis.unlink(keys);
    await killConnections(redis, 'millrace-gateway');
    await until('both jobs wait again', async () => (await waitingJobs(redis, silent.queue)) === 2);
    await harness.worker(textModel(model));
    const { status, body } = await answer;
    expect(status).to.equal(200);
    expect(body.outputs[1]?.[0]).to.be.closeTo(9000 / 1024, 1e-4);
    expect(await metric(gateway, 'millrace_jobs_added_again_total')).to.equal(2);
  });

  it('does not add again what a worker holds', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const parts: Part[] = [];
    await harness.worker(textModel(model), {
      before: async (part) => {
        parts.push(part);
        await held;
      },
    });
    const gateway = await harness.gateway();
    const answer = predict(gateway, 'a');
    await until('the worker holds the job', () => parts.length === 1);
    await killConnections(redis, 'millrace-gateway');
    await until(
      'the gateway is back',
      async () => (await fetch(`${gateway.url}/v2/health/ready`)).status === 200,
    );
    release();
    expect((await answer).status).to.equal(200);
    expect(parts).to.have.length(1);
    expect(await metric(gateway, 'millrace_jobs_added_again_total')).to.equal(0);
  });

  it('refuses while Redis is away, and serves when it is back', async () => {
    await harness.worker(textModel(model));
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url, models: [model] });
    expect((await predict(gateway, 'a')).status).to.equal(200);
    await proxy.cut();
    const { status, headers, body } = await predict(gateway, 'a');
    expect(status).to.equal(503);
    expect(body.code).to.equal('queue_unavailable');
    expect(headers.get('retry-after')).to.equal('1');
    await until(
      'readiness fails',
      async () => (await fetch(`${gateway.url}/v2/health/ready`)).status === 503,
    );
    expect((await fetch(`${gateway.url}/v2/health/live`)).status).to.equal(200);
    await proxy.open();
    await until(
      'the gateway is ready',
      async () => (await fetch(`${gateway.url}/v2/health/ready`)).status === 200,
    );
    expect((await predict(gateway, 'a')).status).to.equal(200);
  });

  it('holds no request past its deadline when Redis hangs', async () => {
    await harness.worker(textModel(model));
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url });
    expect((await predict(gateway, 'a')).status).to.equal(200);
    proxy.freeze();
    const late = await post(`${gateway.url}/v1/models/${model}/predict`, { inputs: 'a', waitMs: 200 });
    expect(late.status).to.equal(504);
    expect((await fetch(`${gateway.url}/metrics`)).status).to.equal(200);
  });

  it('notices a link on which nothing comes any more within seconds, refuses meanwhile, and makes it anew', async () => {
    await harness.worker(textModel(model));
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url });
    expect((await predict(gateway, 'a')).status).to.equal(200);
    // Connections that come later pass: as when a peer vanished and its successor is there.
    proxy.freeze();
    const waiting = predict(gateway, 'b');
    await until('new requests are refused', async () => {
      const { status, headers } = await post(`${gateway.url}/v1/models/${model}/predict`, {
        inputs: 'c',
        waitMs: 300,
      });
      return status === 503 && headers.get('retry-after') === '1';
    });
    await until('the link is made anew', async () => (await predict(gateway, 'd')).status === 200);
    expect([200, 503]).to.include((await waiting).status);
  });

  it('answers what waited through an outage', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await harness.worker(textModel(model), { before: () => held });
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url });
    const answers = Array.from({ length: 5 }, (_, i) => predict(gateway, `text ${i}`));
    const jobs = async (): Promise<number> => await redis.llen(`${BULL_PREFIX}:${worker.queue}:active`);
    await until('the worker holds all', async () => (await jobs()) === 5);
    await proxy.cut();
    release();
    await until('all replies are stored', () => worker.answered.length === 5);
    await proxy.open();
    for (const { status } of await Promise.all(answers)) expect(status).to.equal(200);
  });
});
