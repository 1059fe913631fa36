import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectRedis, createLogger, gatewayMetrics, RedisClock, untilReady } from '@millrace/shared';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedisUrl, uniqueName, until } from '../test-support/redis.js';
import { Deliveries } from './deliveries.js';
import { readTarget, type TargetLimits } from './target.js';

const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, yes').toString('base64')}`;
const OPEN: TargetLimits = {
  callbackSecret: SECRET,
  callbackHosts: [],
  callbackAllowHttp: true,
  callbackAllowPrivate: true,
};
const CLOSED: TargetLimits = { ...OPEN, callbackAllowHttp: false, callbackAllowPrivate: false };

interface Received {
  at: number;
  id: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** A receiver that checks signatures as Standard Webhooks says; `answer` decides what it says to each. */
async function receiver(harness: Harness, answer: (received: Received, count: number) => number | string) {
  const received: Received[] = [];
  const open = { now: 0, most: 0 };
  const server = createServer((req, res) => {
    open.most = Math.max(open.most, ++open.now);
    let body = '';
    req.on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => {
      const { headers } = req;
      const id = String(headers['webhook-id']);
      const signed = `${id}.${headers['webhook-timestamp']}.${body}`;
      const key = Buffer.from(SECRET.slice(6), 'base64');
      const right = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
      const one = { at: performance.now(), id, headers, body };
      received.push(one);
      const said = headers['webhook-signature'] === right ? answer(one, received.length) : 401;
      const location = typeof said === 'string' ? { location: said } : {};
      res.writeHead(typeof said === 'string' ? 307 : said, location).end();
      open.now--;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.onRelease(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/told`;
  return { url, received, open };
}

describe('the address of a callback', () => {
  const fault = (value: string, limits: TargetLimits): unknown => {
    try {
      return readTarget(value, limits);
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('is one of the open internet over https', () => {
    expect(readTarget('https://example.org/told?x=1', CLOSED)).to.equal('https://example.org/told?x=1');
    expect(readTarget('https://[2606:4700::1111]/', CLOSED)).to.equal('https://[2606:4700::1111]/');
    expect(fault('http://example.org/', CLOSED)).to.equal('invalid_input');
    for (const host of [
      '127.0.0.1',
      '10.1.2.3',
      '192.168.0.1',
      '169.254.169.254',
      '[::1]',
      '[fd00::1]',
      '[::10.0.0.1]',
    ]) {
      expect(fault(`https://${host}/`, CLOSED), host).to.equal('invalid_input');
    }
    // The same address in other clothes.
    for (const host of ['2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '127.1', '[::ffff:7f00:1]']) {
      expect(fault(`https://${host}/`, CLOSED), host).to.equal('invalid_input');
    }
    for (const value of [
      '',
      'no url',
      'ftp://example.org/',
      'https://u:p@example.org/',
      `https://e.org/${'x'.repeat(2048)}`,
    ]) {
      expect(fault(value, CLOSED), value.slice(0, 30)).to.equal('invalid_input');
    }
  });

  it('is told by the schemes that are taken, where it has another', () => {
    const told = (callbackAllowHttp: boolean) => () =>
      readTarget('ftp://example.org/', { ...CLOSED, callbackAllowHttp });
    expect(told(false)).to.throw(/must begin with https:\/\/\.$/);
    expect(told(true)).to.throw(/must begin with https:\/\/ or http:\/\/\.$/);
  });

  it('is one of the list where there is one', () => {
    const limits = { ...CLOSED, callbackHosts: ['hooks.example.org'] };
    expect(readTarget('https://hooks.example.org/a', limits)).to.equal('https://hooks.example.org/a');
    expect(fault('https://example.org/a', limits)).to.equal('invalid_input');
  });

  it('is not taken without a secret to sign with', () => {
    expect(fault('https://example.org/', { ...CLOSED, callbackSecret: '' })).to.equal('unsupported');
  });
});

describe('callbacks', () => {
  const harness = new Harness();
  const model = uniqueName('text');
  let gateway: Gateway;
  /** Requests with the parameter "hold" are answered once this resolves. */
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });

  before(async () => {
    await harness.worker(textModel(model), {
      before: ({ parameters }) => (parameters.hold === true ? held : undefined),
      verdict: (item) =>
        item === 'bad' ? { status: 'failed', code: 'text_too_long', message: 'Too long.' } : { status: 'ok' },
    });
    gateway = await harness.gateway({ ...OPEN, callbackTimeoutMs: 1000 });
  });
  after(() => harness.release());

  const send = (inputs: unknown, callback: string, at = gateway) =>
    post(
      `${at.url}/v1/models/${model}/predict`,
      { inputs },
      { prefer: 'respond-async', 'millrace-callback': callback },
    );

  /** Deliveries of a test's own queue fetcher, with short delays. */
  async function deliveries(settings: Partial<Parameters<typeof makeSettings>[0]> = {}) {
    const redis = connectRedis(testRedisUrl(), 'producer', 'test');
    const fetching = connectRedis(testRedisUrl(), 'worker', 'test');
    await Promise.all([untilReady(redis), untilReady(fetching)]);
    const clock = new RedisClock();
    await clock.start(redis);
    const made = new Deliveries({
      redis,
      fetching,
      settings: makeSettings(settings),
      clock,
      metrics: gatewayMetrics(),
      logger: createLogger('silent', {}),
      queue: `{${uniqueName('callbacks')}}`,
      firstRetryMs: 50,
    });
    harness.onRelease(async () => {
      await made.close();
      clock.stop();
      redis.disconnect();
      fetching.disconnect();
    });
    return made;
  }

  function makeSettings(settings: { callbacksPerHost?: number; callbackAllowPrivate?: boolean }) {
    return { ...OPEN, callbackTimeoutMs: 500, callbacksPerHost: 4, ...settings };
  }

  it('tell how a request has ended, signed, with an id of its own', async () => {
    const { url, received } = await receiver(harness, () => 204);
    const done = await send(['one', 'two'], url);
    const failed = await send(['fine', 'bad'], url);
    await until('both ends were told', () => received.length === 2);
    const told = new Map(received.map(({ id, body }) => [id, JSON.parse(body) as Record<string, unknown>]));
    expect(told.get(String(done.body.id))).to.deep.include({ type: 'job.done' });
    expect(told.get(String(failed.body.id))).to.deep.include({ type: 'job.failed' });
    const data = told.get(String(done.body.id))?.data as Record<string, unknown>;
    expect(data).to.deep.include({ id: done.body.id, items: { total: 2, done: 2 } });
    const result = await get(`${gateway.url}${String(data.resultUrl)}`);
    expect(result.body).to.have.property('outputs').with.length(2);
    for (const { headers } of received) {
      expect(Number(headers['webhook-timestamp'])).to.be.closeTo(Date.now() / 1000, 60);
    }
  });

  it('tell of what was taken back', async () => {
    const { url, received } = await receiver(harness, () => 204);
    const later = new Date(Date.now() + 60_000).toISOString();
    const { body } = await post(
      `${gateway.url}/v1/models/${model}/predict`,
      { inputs: 'x' },
      { prefer: 'respond-async', 'millrace-callback': url, 'millrace-not-before': later },
    );
    await fetch(`${gateway.url}/v1/jobs/${body.id}`, { method: 'DELETE' });
    await until('the end was told', () => received.length === 1);
    expect(JSON.parse(received[0]?.body ?? '')).to.include({ type: 'job.cancelled' });
  });

  it('are told by another gateway where the one that took the request is gone', async () => {
    const { url, received } = await receiver(harness, () => 204);
    const first = await harness.gateway({ ...OPEN });
    const { status } = await post(
      `${first.url}/v1/models/${model}/predict`,
      { inputs: 'x', parameters: { hold: true } },
      { prefer: 'respond-async', 'millrace-callback': url },
    );
    expect(status).to.equal(202);
    await first.close();
    letGo();
    await until('the end was told', () => received.length === 1);
  });

  it('are refused at the door where they may not go', async () => {
    const strict = await harness.gateway({ callbackSecret: SECRET });
    const { status, body } = await send('x', 'https://127.0.0.1/', strict);
    expect(status).to.equal(400);
    expect(body).to.include({ field: 'Millrace-Callback' });
    const none = await harness.gateway();
    expect((await send('x', 'https://example.org/', none)).status).to.equal(501);
  });

  it('come again, later each time, until they are taken, with the same id', async () => {
    const made = await deliveries();
    const { url, received } = await receiver(harness, (_, count) => (count < 4 ? 500 : 204));
    await made.add({ url, id: uniqueName('again'), body: '{}' });
    await until('the fourth attempt', () => received.length === 4);
    expect(new Set(received.map(({ id }) => id)).size).to.equal(1);
    const gaps = received.slice(1).map(({ at }, i) => at - (received[i]?.at ?? 0));
    // A half to all of 50, 150 and 450 ms.
    for (const [i, least] of [25, 75, 225].entries()) expect(gaps[i]).to.be.at.least(least);
  });

  it('count as failed where no answer comes in time', async () => {
    const made = await deliveries();
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    harness.onRelease(() => silent.closeAllConnections());
    harness.onRelease(() => void silent.close());
    const id = uniqueName('silent');
    const { port } = silent.address() as AddressInfo;
    await made.add({ url: `http://127.0.0.1:${port}/`, id, body: '{}' });
    await until('it was tried', async () => ((await made.queue.getJob(id))?.attemptsMade ?? 0) > 0);
    expect((await made.queue.getJob(id))?.failedReason).to.match(/abort|timeout/i);
  });

  it('follow no redirect, and are given up at once where nobody is there any more', async () => {
    const made = await deliveries();
    const target = await receiver(harness, () => 204);
    const { url, received } = await receiver(harness, (_, count) => (count === 1 ? target.url : 410));
    const id = uniqueName('gone');
    await made.add({ url, id, body: '{}' });
    await until('the callback was given up', async () => (await made.queue.getJob(id))?.isFailed() ?? false);
    expect(received).to.have.length(2);
    expect(target.received).to.deep.equal([]);
    // What was given up can be sent again.
    const dead = await made.queue.getJob(id);
    await dead?.retry();
    await until('it was sent again', () => received.length === 3);
  });

  it('do not go where a name leads inward', async () => {
    const made = await deliveries({ callbackAllowPrivate: false });
    const { url, received } = await receiver(harness, () => 204);
    const id = uniqueName('inward');
    await made.add({ url: url.replace('127.0.0.1', 'localhost'), id, body: '{}' });
    await until('it was tried', async () => ((await made.queue.getJob(id))?.attemptsMade ?? 0) > 0);
    const job = await made.queue.getJob(id);
    expect(job?.failedReason).to.equal('localhost leads to a private address');
    expect(received).to.deep.equal([]);
    await job?.remove().catch(() => undefined);
  });

  it('go to one host a few at a time', async () => {
    const made = await deliveries({ callbacksPerHost: 2 });
    const { url, received, open } = await receiver(harness, () => 204);
    await Promise.all(
      Array.from({ length: 20 }, () => made.add({ url, id: uniqueName('many'), body: '{}' })),
    );
    await until('all were told', () => received.length === 20);
    expect(open.most).to.be.at.most(2);
  });
});
