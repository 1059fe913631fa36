import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { testRedis, uniqueName, until, waitingJobs } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

const GET = 'GET /v2/health/live HTTP/1.1\r\nHost: x\r\n';

async function metric(gateway: Gateway, name: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

describe('at the door', () => {
  const harness = new Harness();
  const model = uniqueName('door');
  const queueOnly = new StandInWorker(textModel(model));
  const post = `POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
  let strict: Gateway;
  let gateway: Gateway;

  before(async () => {
    await queueOnly.announce();
    harness.onRelease(() => queueOnly.stop());
    strict = await harness.gateway({ headersTimeoutMs: 400, requestTimeoutMs: 800, models: [model] });
    gateway = await harness.gateway({ models: [model] });
  });
  after(() => harness.release());

  /** Its workers would be missed, and requests refused, a while after they announced themselves. */
  async function announced(at: Gateway): Promise<void> {
    await until('the model is served', async () => {
      await queueOnly.announce();
      return (await fetch(`${at.url}/v2/models/${model}/ready`)).ok;
    });
  }

  for (const [who, first, drop] of [
    ['drips headers', GET, 'X-More: x\r\n'],
    ['drips one header', `${GET}X: `, 'x'],
    ['drips a body', `${post}Content-Length: 1000\r\n\r\n{`, ' '],
    ['drips chunks of a body', `${post}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  ] as const) {
    it(`a client that ${who} is told and cut off`, async () => {
      const client = new RawClient(strict).say(first).drip(drop, 50);
      await client.closed;
      expect(client.statuses).to.deep.equal([408]);
      expect(client.heard)
        .to.include('"code":"request_timeout"')
        .and.match(/\r\nConnection: close\r\n/);
    });
  }

  it('a client that says nothing is cut off', async () => {
    await new RawClient(strict).closed;
  });

  it('an answer may take longer than the request for it may', async () => {
    await announced(strict);
    const body = '{"inputs":"a"}';
    const client = new RawClient(strict).say(
      `${post}Prefer: wait=2\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await client.closed;
    expect(client.statuses).to.deep.equal([504]);
  });

  it('more connections than the limit are told so, and those there are stay', async () => {
    const small = await harness.gateway({ maxConnections: 3, models: [model] });
    const kept = [1, 2, 3].map(() => new RawClient(small).say(`${GET}\r\n`));
    await until('all are served', () => kept.every(({ statuses }) => statuses.length === 1));
    const refused = new RawClient(small).say(`${GET}\r\n`);
    await refused.closed;
    expect(refused.statuses).to.deep.equal([503]);
    expect(refused.heard)
      .to.include('"code":"too_many_connections"')
      .and.match(/\r\nRetry-After: 1\r\n/);
    const [first, ...others] = kept;
    first?.socket.end();
    await first?.closed;
    await until('a place is free', async () => {
      const next = new RawClient(small).say(`${GET}Connection: close\r\n\r\n`);
      await next.closed;
      return next.statuses[0] === 200;
    });
    for (const { socket } of others) socket.write(`${GET}\r\n`);
    await until('the others are still served', () => others.every(({ statuses }) => statuses.length === 2));
    for (const { socket } of others) socket.destroy();
    await until('metrics can be read', async () => {
      const refusals = await metric(small, 'millrace_gateway_connections_refused_total').catch(() => 0);
      return refusals >= 1;
    });
  });

  it('bodies that are sent slowly may not be more together than the limit', async () => {
    const tight = await harness.gateway({ maxQueuedBytes: 65_536, models: [model] });
    const send = (bytes: number): RawClient =>
      new RawClient(tight).say(
        `${post}Connection: close\r\nContent-Length: ${bytes + 1}\r\n\r\n${'{'.repeat(bytes)}`,
      );
    const [first, second] = [send(40_000), send(40_000)];
    await until('one of them is refused', () => `${first.statuses}${second.statuses}` === '429');
    const [kept, refused] = first.statuses.length === 0 ? [first, second] : [second, first];
    expect(refused.heard)
      .to.include('"code":"queue_full"')
      .and.match(/\r\nRetry-After: 1\r\n/);
    // What was refused holds nothing, nor what has gone away.
    const third = send(20_000);
    third.socket.destroy();
    await third.closed;
    kept.say('}');
    await kept.closed;
    expect(kept.statuses).to.deep.equal([400]);
    await until('there is room for another', async () => {
      const whole = send(60_000).say('}');
      await whole.closed;
      return whole.statuses[0] === 400;
    });
  });

  it('more header lines than the limit are refused', async () => {
    const lines = Array.from({ length: 100 }, (_, i) => `X-${i}: x\r\n`).join('');
    const client = new RawClient(gateway).say(`${GET}${lines}\r\n`);
    await client.closed;
    expect(client.statuses).to.deep.equal([431]);
    expect(client.heard).to.include('"code":"headers_too_large"');
  });

  for (const target of [
    'http://[',
    'http://x:y:z/',
    'http://[::1',
    '*',
    'foo://bar/baz',
    '/%zz',
    '/%',
    '/\\..\\',
  ]) {
    it(`the target ${target} gets an error of our shape`, async () => {
      const client = new RawClient(gateway).say(
        `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );
      await client.closed;
      expect(client.statuses[0]).to.be.oneOf([400, 404]);
      expect(client.heard).to.match(/\r\nContent-Type: application\/problem\+json\r\n/);
      expect(client.heard).to.match(/"code":"(invalid_http|invalid_input|not_found)"/);
    });
  }

  it('a proxy may send a whole URL', async () => {
    const client = new RawClient(gateway).say(
      'GET http://x/v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    await client.closed;
    expect(client.statuses).to.deep.equal([200]);
  });

  it('a client that closes its half has gone, and its work with it', async () => {
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    await announced(gateway);
    const gone = await metric(gateway, 'millrace_clients_gone_total');
    const body = '{"inputs":"a"}';
    const client = new RawClient(gateway).say(`${post}Content-Length: ${body.length}\r\n\r\n${body}`);
    await until('its job waits', async () => (await waitingJobs(redis, queueOnly.queue)) === 1);
    client.socket.end();
    await client.closed;
    await until('its job is gone', async () => (await waitingJobs(redis, queueOnly.queue)) === 0);
    expect(await metric(gateway, 'millrace_clients_gone_total')).to.equal(gone + 1);
  });
});
