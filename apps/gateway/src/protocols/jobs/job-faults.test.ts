import { randomUUID } from 'node:crypto';
import { payloadKey, queueName } from '@millrace/shared';
import { expect } from 'chai';
import { makeApiKey } from '../../admission/api-keys.js';
import type { Gateway } from '../../gateway.js';
import { get, Harness, post } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { RawClient } from '../../test-support/raw-client.js';
import { testRedis, uniqueName, until } from '../../test-support/redis.js';
import { RedisProxy } from '../../test-support/redis-proxy.js';
import type { StandInWorker } from '../../test-support/stand-in-worker.js';

interface Job {
  id: string;
  state: string;
  detail?: string;
  field?: string;
}

const ASYNC = { prefer: 'respond-async' };

describe('durable requests, where something goes wrong', () => {
  let harness: Harness;
  let model: string;
  let worker: StandInWorker;
  let gateway: Gateway;
  let letGo: () => void;

  beforeEach(async () => {
    harness = new Harness();
    model = uniqueName('text');
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    worker = await harness.worker(textModel(model), {
      before: ({ parameters }) => (parameters.hold === true ? held : undefined),
    });
    gateway = await harness.gateway();
  });
  afterEach(() => {
    letGo();
    return harness.release();
  });

  const predict = (headers: Record<string, string> = {}, parameters = {}, at = gateway) =>
    post<Job>(`${at.url}/v1/models/${model}/predict`, { inputs: 'a', parameters }, { ...ASYNC, ...headers });
  const later = (): Record<string, string> => ({
    'millrace-not-before': new Date(Date.now() + 60_000).toISOString(),
  });
  const job = (path: string, headers: Record<string, string> = {}, at = gateway) =>
    get<Job>(`${at.url}/v1/jobs/${path}`, headers);

  it('refuse queries that were made up, and say what was wrong with them', async () => {
    const { body } = await predict(later());
    const faults: [string, string, string][] = [
      [`?cursor=1.2.3_${randomUUID()}`, 'cursor', 'the "next" of another page'],
      [`?cursor=._${randomUUID()}`, 'cursor', 'the "next" of another page'],
      ['?limit=0', 'limit', 'at least 1'],
      ['?limit=101', 'limit', 'at most 100'],
      ['?limit=1.5', 'limit', 'a whole number'],
      [`/${body.id}?wait=3601`, 'wait', 'at most 3600'],
      [`/${body.id}?wait=-1`, 'wait', 'at least 0'],
      [`/${body.id}/result?wait=soon`, 'wait', 'a number'],
    ];
    for (const [query, field, words] of faults) {
      const answer = await get<Job>(`${gateway.url}/v1/jobs${query}`);
      expect(answer.status, query).to.equal(400);
      expect(answer.body.field, query).to.equal(field);
      expect(answer.body.detail, query).to.include(words);
    }
  });

  it('are taken back once, whatever their client named them', async () => {
    // JSON that some parsers refuse, and JSON that looks like a note of ours.
    for (const id of ['\ud800', '"cancelledAt":1}', ',"cancelledAt":1}', '{"cancelledAt":1}']) {
      const { body } = await post<Job>(
        `${gateway.url}/v2/models/${model}/infer`,
        { id, inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] }] },
        { ...ASYNC, ...later() },
      );
      const cancel = () => fetch(`${gateway.url}/v1/jobs/${body.id}`, { method: 'DELETE' });
      const answers = await Promise.all([cancel(), cancel()]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409]);
      expect((await job(body.id)).body.state).to.equal('cancelled');
    }
  });

  it('are queued, not scheduled, where their time has come already', async () => {
    const { body } = await predict({ 'millrace-not-before': '2020-01-01T00:00:00Z' });
    expect(body.state).to.equal('queued');
  });

  it('answer HEAD of their events at once', async () => {
    const { body } = await predict(later());
    const response = await fetch(`${gateway.url}/v1/jobs/${body.id}/events`, { method: 'HEAD' });
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.include('text/event-stream');
  });

  it('compare If-None-Match as HTTP says, and say nothing of a body that is not sent', async () => {
    const { body } = await predict(later());
    const etag = (await job(body.id)).headers.get('etag') ?? '';
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const response = await fetch(`${gateway.url}/v1/jobs/${body.id}`, {
        headers: { 'if-none-match': known },
      });
      expect(response.status, known).to.equal(304);
      expect(response.headers.get('content-length'), known).to.equal(null);
      expect(response.headers.get('etag'), known).to.equal(etag);
    }
    expect((await job(body.id, { 'if-none-match': '"other"' })).status).to.equal(200);
  });

  it('wait for a change of what their client knows, not only for the end', async () => {
    await until('the model is served', async () => (await predict()).status === 202);
    await worker.pause();
    const { body } = await predict({}, { hold: true });
    const etag = (await job(body.id)).headers.get('etag') ?? '';
    const changed = job(`${body.id}?wait=30`, { 'if-none-match': etag });
    worker.resume();
    expect((await changed).body.state).to.equal('running');
  });

  it('are told of by a gateway that goes away, to whoever waits for them', async () => {
    const going = await harness.gateway({ graceMs: 20_000 });
    const { body } = await predict(later(), {}, going);
    const began = performance.now();
    const waiting = [
      job(`${body.id}?wait=30`, {}, going),
      job(`${body.id}/result?wait=30`, {}, going),
      predict({ ...later(), prefer: 'respond-async, wait=30' }, {}, going),
    ];
    await until('all of them wait', async () => {
      const { body: list } = await get<{ data: Job[] }>(`${gateway.url}/v1/jobs?model=${model}`);
      return list.data.length === 2;
    });
    await going.close();
    const answers = await Promise.all(waiting);
    expect(performance.now() - began).to.be.below(10_000);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 202, 202]);
    for (const answer of answers) expect(answer.body.state).to.equal('scheduled');
  });

  it('are 503 while Redis is away, and waited for all the same', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const cut = await harness.gateway({ redisUrl: proxy.url });
    const { body } = await predict({}, { hold: true }, cut);
    const waiting = job(`${body.id}?wait=30`, {}, cut);
    const accepted = predict({ prefer: 'respond-async, wait=2' }, { hold: true }, cut);
    await until('both are accepted', async () => {
      const list = await get<{ data: Job[] }>(`${gateway.url}/v1/jobs?model=${model}`);
      return list.body.data.length === 2;
    });
    await proxy.cut();
    for (const path of ['', `/${body.id}`, `/${body.id}/result`, `/${body.id}/events`]) {
      const answer = await get(`${cut.url}/v1/jobs${path}`);
      expect(answer.status, path).to.equal(503);
      expect(answer.headers.get('retry-after'), path).to.equal('1');
    }
    // It was accepted: that Redis went away afterwards must not hide where to ask for it.
    expect((await accepted).status).to.equal(202);
    await proxy.open();
    letGo();
    expect((await waiting).body.state).to.equal('done');
  });

  it('are 503 at once where Redis hangs', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const hung = await harness.gateway({ redisUrl: proxy.url });
    const { body } = await predict(later(), {}, hung);
    proxy.freeze();
    await until('the silence is noticed', async () => {
      return (await fetch(`${hung.url}/v2/health/ready`)).status === 503;
    });
    const began = performance.now();
    expect((await job(body.id, {}, hung)).status).to.equal(503);
    expect(performance.now() - began).to.be.below(500);
  });

  it('are refused for good where even alone they are more than a key may keep', async () => {
    const { key, entry } = makeApiKey(uniqueName('someone'), ['infer', 'jobs']);
    const small = await harness.gateway({ apiKeys: [entry], maxJobBytesPerKey: 1024 });
    const headers = { ...ASYNC, authorization: `Bearer ${key}` };
    await until('a small one is taken', async () => (await predict(headers, {}, small)).status === 202);
    const { status, body } = await post<Job>(
      `${small.url}/v1/models/${model}/predict`,
      { inputs: 'a'.repeat(2000) },
      headers,
    );
    expect(status).to.equal(413);
    expect(body).to.include({ field: 'body' });
  });

  it('tell who waits for them how they stand, and how they have ended without an answer', async () => {
    const waits = { prefer: 'respond-async, wait=1' };
    const running = await predict(waits, { hold: true });
    expect(running.status).to.equal(202);
    expect(running.body.state).to.equal('running');
    const lapsed = await predict(
      { prefer: 'respond-async, wait=10', 'millrace-keep-ms': '300' },
      { hold: true },
    );
    expect(lapsed.status).to.equal(410);
    const taken = predict({ prefer: 'respond-async, wait=30' }, { hold: true });
    await until('it is taken back', async () => {
      const list = await get<{ data: Job[] }>(`${gateway.url}/v1/jobs?state=running&limit=1`);
      const newest = list.body.data.find(({ id }) => id !== running.body.id);
      if (!newest) return false;
      return (await fetch(`${gateway.url}/v1/jobs/${newest.id}`, { method: 'DELETE' })).status === 200;
    });
    expect((await taken).status).to.equal(409);
  });

  it('hold up no gateway for clients that went away while they waited behind another answer', async () => {
    const going = await harness.gateway({ graceMs: 20_000 });
    const { body } = await predict(later(), {}, going);
    const asks = ['?wait=60', '/events', '?wait=60', '/events'].map(
      (what) => `GET /v1/jobs/${body.id}${what} HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    const ended = async (): Promise<number> => {
      const metrics = await (await fetch(`${going.url}/metrics`)).text();
      return Number(/^millrace_requests_total{.*status="499".*} (\d+)$/m.exec(metrics)?.[1] ?? 0);
    };
    const client = new RawClient(going).say(asks.join(''));
    await until('all are asked', () => client.socket.bytesWritten > 0);
    client.socket.end();
    await client.closed;
    await until('all have ended', async () => (await ended()) === asks.length);
    const began = performance.now();
    await going.close();
    expect(performance.now() - began).to.be.below(10_000);
  });

  it('leave none of their inputs in Redis once they are taken back', async () => {
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    await until('the model is served', async () => (await predict()).status === 202);
    const { body } = await post<Job>(
      `${gateway.url}/v1/models/${model}/predict`,
      { inputs: 'a'.repeat(100_000) },
      { ...ASYNC, ...later() },
    );
    const input = payloadKey(queueName(model, '1'), body.id, 0);
    expect(await redis.exists(input)).to.equal(1);
    await fetch(`${gateway.url}/v1/jobs/${body.id}`, { method: 'DELETE' });
    expect(await redis.exists(input)).to.equal(0);
  });

  it('are looked at without reading what they have brought', async () => {
    const name = uniqueName('large');
    await harness.worker(identityModel(name));
    const url = `${gateway.url}/v1/models/${name}/predict`;
    const large = { inputs: { bytes: ['x'.repeat(4_000_000)] } };
    await until('the model is served', async () => (await post(url, large)).status === 200);
    const { body } = await post<Job>(url, large, ASYNC);
    expect((await job(`${body.id}?wait=10`)).body.state).to.equal('done');
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    const sent = async (): Promise<number> =>
      Number(/total_net_output_bytes:(\d+)/.exec(await redis.info('stats'))?.[1]);
    const before = await sent();
    for (let i = 0; i < 5; i++) {
      const { body: list } = await get<{ data: Job[] }>(`${gateway.url}/v1/jobs?model=${name}`);
      expect(list.data[0]?.state).to.equal('done');
    }
    expect((await sent()) - before).to.be.below(4_000_000);
  });
});
