import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { makeApiKey } from '../admission/api-keys.js';
import type { Gateway } from '../gateway.js';
import { type Answer, Harness, post } from '../test-support/harness.js';
import { identityModel, textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until } from '../test-support/redis.js';
import { RedisProxy } from '../test-support/redis-proxy.js';
import type { StandInWorker } from '../test-support/stand-in-worker.js';
import { LEASE_MS } from './records.js';

/** A worker's hand on its answers: what it holds is answered when it is let go. */
class Gate {
  #open: () => void = () => undefined;
  held: Promise<void> = Promise.resolve();
  arrived = 0;

  close(): void {
    this.held = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open();
  }

  readonly before = (): Promise<void> => {
    this.arrived += 1;
    return this.held;
  };
}

describe('an Idempotency-Key', () => {
  const harness = new Harness();
  const gate = new Gate();
  const model = uniqueName('once');
  const tensors = uniqueName('once-tensors');
  let fails = false;
  let worker: StandInWorker;
  let one: Gateway;
  let two: Gateway;

  const predict = (
    at: Gateway,
    key: string,
    body: object = { inputs: 'a' },
    headers: Record<string, string> = {},
  ): Promise<Answer<Record<string, unknown>>> =>
    post(`${at.url}/v1/models/${model}/predict`, body, { 'idempotency-key': key, ...headers });
  const replayed = ({ headers }: Answer<unknown>): boolean => headers.get('idempotency-replayed') === 'true';

  /** Resolves when the one request that runs was given more time than it had left. */
  async function leaseRenewed(): Promise<void> {
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    const leftMs = async (): Promise<number> => {
      const keys = await redis.keys(`mr-idempotency:{${model}@1}:*`);
      const left = await Promise.all(keys.map((key) => redis.pttl(key)));
      // What is done is kept for a day.
      return Math.min(...left.filter((ms) => ms > 0 && ms <= LEASE_MS));
    };
    let before = await leftMs();
    await until('the lease is renewed', async () => {
      const now = await leftMs();
      const renewed = now > before && now < Number.POSITIVE_INFINITY;
      before = now;
      return renewed;
    });
  }

  before(async () => {
    worker = await harness.worker(textModel(model), {
      before: gate.before,
      verdict: (text) => {
        if (text === 'too long') return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        if (!fails) return { status: 'ok' };
        return { status: 'failed', code: 'inference_failed', message: 'The model failed.' };
      },
    });
    await harness.worker(identityModel(tensors));
    one = await harness.gateway({ models: [model, tensors] });
    two = await harness.gateway({ models: [model, tensors] });
  });
  beforeEach(() => {
    fails = false;
    worker.answered.length = 0;
  });
  afterEach(() => gate.open());
  after(() => harness.release());

  it('gives a retry the first answer, at any gateway, under an id of its own', async () => {
    const key = randomUUID();
    const first = await predict(one, key);
    const retry = await predict(two, key);
    expect([first.status, retry.status]).to.deep.equal([200, 200]);
    expect(retry.body).to.deep.equal(first.body);
    expect([replayed(first), replayed(retry)]).to.deep.equal([false, true]);
    expect(retry.headers.get('x-request-id')).not.to.equal(first.headers.get('x-request-id'));
    expect(retry.headers.get('content-type')).to.equal(first.headers.get('content-type'));
    expect(worker.answered).to.have.length(1);
    const metrics = await (await fetch(`${two.url}/metrics`)).text();
    expect(metrics).to.include(`millrace_idempotent_replays_total{model="${model}"} 1`);
  });

  it('makes a retry wait for the first, which still runs', async () => {
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const first = predict(one, key);
    await until('the first runs', () => gate.arrived > arrived);
    const retries = [predict(two, key), predict(one, key), predict(two, key)];
    await leaseRenewed();
    gate.open();
    const { body } = await first;
    for (const retry of await Promise.all(retries)) {
      expect(retry.status).to.equal(200);
      expect(retry.body).to.deep.equal(body);
      expect(replayed(retry)).to.equal(true);
    }
    expect(worker.answered).to.have.length(1);
  });

  it('makes one run of all that is sent under it at once', async () => {
    const keys = Array.from({ length: 50 }, () => randomUUID());
    const sent = keys.flatMap((key, i) =>
      [one, two, one, two, two].map((at) => predict(at, key, { inputs: `text ${i}` })),
    );
    const answers = await Promise.all(sent);
    for (let i = 0; i < keys.length; i++) {
      const [first, ...others] = answers.slice(5 * i, 5 * i + 5);
      expect(first?.status).to.equal(200);
      for (const other of others) expect(other.body).to.deep.equal(first?.body);
    }
    expect(answers.filter(replayed)).to.have.length(200);
    expect(worker.answered.reduce((items, part) => items + part.count, 0)).to.equal(50);
  });

  it('lets a retry wait no longer than it said', async () => {
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const first = predict(one, key);
    await until('the first runs', () => gate.arrived > arrived);
    const retry = await predict(two, key, { inputs: 'a' }, { prefer: 'wait=1' });
    expect(retry.status).to.equal(504);
    expect(retry.body.code).to.equal('deadline_exceeded');
    gate.open();
    expect((await first).status).to.equal(200);
  });

  it('is refused with another request, while the first runs and after', async () => {
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const first = predict(one, key);
    await until('the first runs', () => gate.arrived > arrived);
    const during = await predict(two, key, { inputs: 'b' });
    gate.open();
    await first;
    const later = await predict(two, key, { inputs: 'b' });
    for (const { status, body } of [during, later]) {
      expect(status).to.equal(422);
      expect(body).to.include({ code: 'idempotency_key_reused', field: 'Idempotency-Key' });
    }
    expect((await predict(one, key)).status).to.equal(200);
  });

  it('holds at the Open Inference door too', async () => {
    const url = (at: Gateway): string => `${at.url}/v2/models/${tensors}/infer`;
    const body = (value: number): object => ({
      id: 'mine',
      inputs: [{ name: 'fp32', shape: [1, 1], datatype: 'FP32', data: [value] }],
    });
    const headers = { 'idempotency-key': randomUUID() };
    const first = await post(url(one), body(1), headers);
    const retry = await post(url(two), body(1), headers);
    expect(first.status).to.equal(200);
    expect(retry.body).to.deep.equal(first.body);
    expect(replayed(retry)).to.equal(true);
    const other = await post(url(one), body(2), headers);
    expect(other.status).to.equal(422);
    expect(other.body.error).to.match(/Idempotency-Key/);
  });

  it('belongs to one API key: two clients with the same one do not meet', async () => {
    const [alice, bob] = [makeApiKey('alice'), makeApiKey('bob')];
    const gateway = await harness.gateway({ apiKeys: [alice.entry, bob.entry], models: [model] });
    const key = randomUUID();
    const asAlice = { 'x-api-key': alice.key };
    const first = await predict(gateway, key, { inputs: 'a' }, asAlice);
    const other = await predict(gateway, key, { inputs: 'b' }, { 'x-api-key': bob.key });
    expect([first.status, other.status]).to.deep.equal([200, 200]);
    expect(replayed(other)).to.equal(false);
    const again = await predict(gateway, key, { inputs: 'a' }, asAlice);
    expect(again.body).to.deep.equal(first.body);
  });

  it("keeps a client's fault, and lets a retry of any other failure run", async () => {
    const fault = randomUUID();
    const first = await predict(one, fault, { inputs: 'too long' });
    const again = await predict(two, fault, { inputs: 'too long' });
    expect([first.status, again.status]).to.deep.equal([400, 400]);
    expect(again.body).to.deep.equal(first.body);
    expect(replayed(again)).to.equal(true);

    fails = true;
    const failure = randomUUID();
    expect((await predict(one, failure)).status).to.equal(500);
    fails = false;
    const retry = await predict(two, failure);
    expect(retry.status).to.equal(200);
    expect(replayed(retry)).to.equal(false);
  });

  it('whose first client goes away lets the waiting retry run', async () => {
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const leaves = new AbortController();
    const first = fetch(`${one.url}/v1/models/${model}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: '{"inputs":"a"}',
      signal: leaves.signal,
    }).catch(() => undefined);
    await until('the first runs', () => gate.arrived > arrived);
    const body = { inputs: 'a' };
    // The same bytes: the body is the fingerprint.
    expect(JSON.stringify(body)).to.equal('{"inputs":"a"}');
    const retry = predict(two, key, body);
    // Time for it to find that the first runs.
    await new Promise((resolve) => setTimeout(resolve, 300));
    leaves.abort();
    await first;
    await until('the retry runs', () => gate.arrived > arrived + 1);
    gate.open();
    const answer = await retry;
    expect(answer.status).to.equal(200);
    expect(replayed(answer)).to.equal(false);
  });

  it('passes to a retry when its gateway is silent, and the first stored answer is the one for both', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const cutOff = await harness.gateway({ redisUrl: proxy.url, models: [model] });
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const first = predict(cutOff, key, { inputs: 'a', waitMs: 25_000 });
    await until('the first runs', () => gate.arrived > arrived);
    await proxy.cut();
    const retry = predict(two, key, { inputs: 'a', waitMs: 25_000 });
    await until('the retry runs', () => gate.arrived > arrived + 1);
    gate.open();
    const second = await retry;
    expect(second.status).to.equal(200);
    expect(replayed(second)).to.equal(false);
    await proxy.open();
    const late = await first;
    expect(late.status).to.equal(200);
    expect(late.body).to.deep.equal(second.body);
    expect(replayed(late)).to.equal(true);
  });

  it('of an answer over a mebibyte lets a retry run again', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const url = (at: Gateway): string => `${at.url}/v1/models/${tensors}/predict`;
    const body = { inputs: { bytes: ['x'.repeat(1_100_000)] } };
    const first = await post(url(one), body, headers);
    const retry = await post(url(two), body, headers);
    expect([first.status, retry.status]).to.deep.equal([200, 200]);
    expect(replayed(retry)).to.equal(false);
    expect(retry.body.outputs).to.deep.equal(first.body.outputs);
    const other = await post(url(two), { inputs: { bytes: ['y'] } }, headers);
    expect(other.status).to.equal(422);
  });

  it('is remembered for as long as the setting says', async () => {
    const gateway = await harness.gateway({ models: [model], idempotencyKeepMs: 1000 });
    const key = randomUUID();
    expect(replayed(await predict(gateway, key))).to.equal(false);
    expect(replayed(await predict(gateway, key))).to.equal(true);
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    await until('nothing is left of it', async () => {
      return (
        (await redis.keys(`mr-idempotency:{${model}@1}:*`)).length === 0 ||
        !replayed(await predict(gateway, key))
      );
    });
  });

  it('is refused with 503 while Redis is away', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url, models: [model] });
    await proxy.cut();
    const refused = await predict(gateway, randomUUID());
    expect(refused.status).to.equal(503);
    expect(refused.body.code).to.equal('queue_unavailable');
    expect(refused.headers.get('retry-after')).to.equal('1');
  });

  it('is refused with 503 while Redis is silent, and what waits goes on waiting', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const gateway = await harness.gateway({ redisUrl: proxy.url, models: [model] });
    gate.close();
    const arrived = gate.arrived;
    const key = randomUUID();
    const first = predict(two, key);
    await until('the first runs', () => gate.arrived > arrived);
    const waits = predict(gateway, key);
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.freeze();
    await until('the gateway notices', async () => !(await fetch(`${gateway.url}/v2/health/ready`)).ok);
    const runs = await predict(gateway, randomUUID());
    gate.open();
    expect(runs.status).to.equal(503);
    expect(runs.body.code).to.equal('queue_unavailable');
    const { body } = await first;
    // The link is made anew.
    const answer = await waits;
    expect(answer.status).to.equal(200);
    expect(answer.body).to.deep.equal(body);
  });

  for (const [name, key] of [
    ['an empty one', ''],
    ['one of 256 characters', 'k'.repeat(256)],
    ['one that is not ASCII', 'schlüssel'],
    ['one with a tab', 'a\tb'],
  ] as const) {
    it(`must have 1 to 255 printable ASCII characters: ${name} is refused`, async () => {
      const { status, body } = await predict(one, key);
      expect(status).to.equal(400);
      expect(body).to.include({ code: 'invalid_input', field: 'Idempotency-Key' });
      expect(body.detail).to.include('Idempotency-Key');
    });
  }

  it('may have 255 characters', async () => {
    expect((await predict(one, `${randomUUID()}${' k'.repeat(109)}!`)).status).to.equal(200);
  });
});
