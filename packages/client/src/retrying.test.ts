import { expect } from 'chai';
import { MillraceClient } from './client.js';
import { MillraceApiError, MillraceConnectionError, MillraceTimeoutError } from './errors.js';
import type { MillraceClientOptions } from './options.js';
import { CALL_MS, QuickClock } from './test-support/quick-clock.js';
import { breakOff, hang, hangUp, json, ScriptedServer } from './test-support/scripted-server.js';

const GOOD = json(200, { outputs: [[1]] });
const LIST = json(200, { data: [] });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('a call that fails', () => {
  let server: ScriptedServer;
  let clock: QuickClock;
  const client = (options: Partial<MillraceClientOptions> = {}) =>
    new MillraceClient({ baseUrl: server.url, timeoutMs: CALL_MS, ...options }, clock);
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail('it should have failed'),
      (error: unknown) => error,
    );

  before(async () => {
    server = await ScriptedServer.start();
  });
  beforeEach(() => {
    clock = new QuickClock();
  });
  afterEach(() => {
    expect(clock.waiting, 'timers left behind').to.equal(0);
  });
  after(() => server.stop());

  it('waits as long as Retry-After asks in seconds, then tries again', async () => {
    server.answer(json(429, {}, { 'retry-after': '2' }), GOOD);
    expect((await client().predict('m', 'a')).outputs).to.deep.equal([[1]]);
    expect(clock.slept).to.deep.equal([2125]);
    expect(server.received).to.have.length(2);
  });

  it('waits until the date that Retry-After names', async () => {
    const headers = { 'retry-after': 'Tue, 01 Jan 2030 12:00:05 GMT', date: 'Tue, 01 Jan 2030 12:00:00 GMT' };
    server.answer(json(503, {}, headers), GOOD);
    await client().predict('m', 'a');
    expect(clock.slept).to.deep.equal([5125]);
  });

  it('backs off longer each time where the server asks for nothing', async () => {
    server.answer(json(503, {}), json(503, {}), json(503, {}), GOOD);
    await client({ retries: 3 }).predict('m', 'a');
    expect(clock.slept).to.deep.equal([125, 250, 500]);
  });

  it('fails with what the server said once its tries are used up', async () => {
    const problem = { code: 'queue_full', detail: 'More work is waiting.', field: 'inputs' };
    server.answer(json(429, problem, { 'retry-after': '1', 'x-request-id': 'r-1' }));
    const error = (await failure(client({ retries: 1 }).predict('m', 'a'))) as MillraceApiError;
    expect(error).to.be.instanceOf(MillraceApiError);
    expect(error.message).to.equal('More work is waiting.');
    expect(error).to.include({
      status: 429,
      code: 'queue_full',
      field: 'inputs',
      requestId: 'r-1',
      retryAfterMs: 1000,
    });
    expect(server.received).to.have.length(2);
  });

  it('fails at once where the wait would outlast its time', async () => {
    server.answer(json(429, {}, { 'retry-after': '60' }), GOOD);
    expect(await failure(client().predict('m', 'a'))).to.have.property('retryAfterMs', 60_000);
    expect(clock.slept).to.deep.equal([]);
  });

  it('is not tried again when it is at fault itself, or when no retries are wanted', async () => {
    server.answer(json(400, { code: 'invalid_input' }));
    expect(await failure(client().predict('m', 'a'))).to.have.property('status', 400);
    expect(server.received).to.have.length(1);
    server.answer(json(503, {}));
    await failure(client().predict('m', 'a', { retries: 0 }));
    expect(server.received).to.have.length(1);
  });

  it('is sent again under the same Idempotency-Key with the same bytes where it may have run', async () => {
    for (const step of [json(502, {}), json(504, {}), hangUp, breakOff]) {
      server.answer(step, GOOD);
      await client().predict('m', 'a');
      const [first, second] = server.received;
      expect(first?.headers['idempotency-key']).to.match(/^[0-9a-f]{32}$/);
      expect(second?.headers['idempotency-key']).to.equal(first?.headers['idempotency-key']);
      expect(second?.body).to.deep.equal(first?.body);
    }
  });

  it('has another key than the next call, or the one that is given', async () => {
    server.answer(GOOD);
    await client().predict('m', 'a');
    await client().predict('m', 'a');
    await client({ idempotencyKeys: false, retries: 0 }).predict('m', 'a', { idempotencyKey: 'mine' });
    const keys = server.received.map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).to.equal(3);
    expect(keys[2]).to.equal('mine');
  });

  it('is not sent again without a key where it may have run', async () => {
    for (const step of [json(502, {}), json(504, {}), hangUp, breakOff]) {
      server.answer(step, GOOD);
      await failure(client({ idempotencyKeys: false }).predict('m', 'a'));
      expect(server.received).to.have.length(1);
      expect(server.received[0]?.headers).not.to.have.property('idempotency-key');
    }
  });

  it('carries no key where it is not tried again anyway', async () => {
    server.answer(GOOD);
    await client({ retries: 0 }).predict('m', 'a');
    expect(server.received[0]?.headers).not.to.have.property('idempotency-key');
  });

  it('is sent again whatever became of it where it only reads', async () => {
    server.answer(hangUp, json(504, {}), LIST);
    expect(await client().models()).to.deep.equal([]);
    expect(server.received).to.have.length(3);
  });

  it('is tried again without a key where nothing listens', async () => {
    const gone = await ScriptedServer.start();
    await gone.stop();
    const error = await failure(client({ baseUrl: gone.url, idempotencyKeys: false }).predict('m', 'a'));
    expect(error).to.be.instanceOf(MillraceConnectionError);
    expect(error).to.have.property('neverSent', true);
    expect(error).to.have.property('message').that.contains('ECONNREFUSED');
    expect(clock.slept).to.have.length(2);
  });

  it('ends with a timeout when its time is over, and leaves the server', async () => {
    server.answer(json(503, {}), hang);
    const call = failure(client().predict('m', 'a'));
    await until(() => server.received.length === 2);
    clock.expire();
    const error = (await call) as MillraceTimeoutError;
    expect(error).to.be.instanceOf(MillraceTimeoutError);
    expect(error.timeoutMs).to.equal(CALL_MS);
    expect(error.cause).to.have.property('status', 503);
    await until(() => server.abandoned === 1);
  });

  it('ends with its signal’s reason, before, while it is sent, and while it waits', async () => {
    server.answer(hang);
    const reason = new Error('changed my mind');
    expect(await failure(client().predict('m', 'a', { signal: AbortSignal.abort(reason) }))).to.equal(reason);
    expect(server.received).to.have.length(0);

    const sent = new AbortController();
    const call = failure(client().predict('m', 'a', { signal: sent.signal }));
    await until(() => server.received.length === 1);
    sent.abort(reason);
    expect(await call).to.equal(reason);
    await until(() => server.abandoned === 1);

    const waiting = new AbortController();
    server.answer(json(503, {}, { 'retry-after': '1' }), GOOD);
    clock.after = abortingAtWait(clock, waiting, reason);
    expect(await failure(client().predict('m', 'a', { signal: waiting.signal }))).to.equal(reason);
    expect(server.received).to.have.length(1);
  });

  it('waits by the real clock for as long as it is asked to', async () => {
    server.answer(json(429, {}, { 'retry-after': '0.2' }), GOOD);
    const started = performance.now();
    await new MillraceClient({ baseUrl: server.url }).predict('m', 'a');
    expect(performance.now() - started).to.be.above(199);
    server.answer(hang);
    const error = await failure(new MillraceClient({ baseUrl: server.url, timeoutMs: 50 }).models());
    expect(error).to.be.instanceOf(MillraceTimeoutError);
  });
});

/** Aborts as soon as a call waits between two tries. */
function abortingAtWait(clock: QuickClock, abort: AbortController, reason: Error): QuickClock['after'] {
  const after = clock.after.bind(clock);
  return (ms, then) => {
    if (ms === CALL_MS) return after(ms, then);
    const stop = after(ms, then);
    queueMicrotask(() => abort.abort(reason));
    return stop;
  };
}
