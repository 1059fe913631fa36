import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { uniqueName, until } from '../test-support/redis.js';

describe('manners of HTTP', () => {
  const harness = new Harness();
  const model = uniqueName('manners');
  const predict = `/v1/models/${model}/predict`;
  let gateway: Gateway;
  let locked: Gateway;

  before(async () => {
    await harness.worker(textModel(model));
    gateway = await harness.gateway({ models: [model] });
    locked = await harness.gateway({ apiKeys: [`someone=${'0a'.repeat(32)}`] });
  });
  after(() => harness.release());

  describe('the id of a request', () => {
    const send = (headers: Record<string, string>, body: unknown = { inputs: 'a' }) =>
      post(`${gateway.url}${predict}`, body, headers);

    it('is ours when the client has none', async () => {
      const { headers, body } = await send({});
      expect(headers.get('x-request-id')).to.equal(body.id);
      expect(headers.has('x-millrace-request-id')).to.equal(false);
    });

    it('is the client’s when it has one, with ours beside it', async () => {
      const { headers, body } = await send({ 'x-request-id': 'order 66/{"a"}' });
      expect(headers.get('x-request-id')).to.equal('order 66/{"a"}');
      expect(headers.get('x-millrace-request-id')).to.equal(body.id);
      const problem = await send({ 'x-request-id': 'mine' }, {});
      expect(problem.status).to.equal(400);
      expect(problem.headers.get('x-request-id')).to.equal('mine');
      expect(problem.headers.get('x-millrace-request-id')).to.equal(problem.body.requestId);
    });

    for (const [what, id] of [
      ['too long', 'x'.repeat(129)],
      ['of other bytes', 'caf\u00e9'],
      ['with a tab', 'a\tb'],
      ['empty', ''],
    ] as const) {
      it(`is ours when the client’s is ${what}`, async () => {
        const { status, headers, body } = await send({ 'x-request-id': id });
        expect(status).to.equal(200);
        expect(headers.get('x-request-id')).to.equal(body.id);
      });
    }

    it('may be any bytes, and breaks no header', async () => {
      for (let byte = 1; byte < 256; byte++) {
        if (byte === 10 || byte === 13) continue;
        const client = new RawClient(gateway).say(
          `GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: a${String.fromCharCode(byte)}b\r\n\r\n`,
        );
        await client.closed;
        expect(client.statuses[0], `byte ${byte}`).to.be.oneOf([200, 400]);
        expect(client.heard).to.match(/^X-Request-Id: [ -~]+\r$/m);
      }
    });
  });

  it('a repeated Host is refused: a proxy in front may have gone by the other', async () => {
    const client = new RawClient(gateway).say('GET /v2/health/live HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n');
    await client.closed;
    expect(client.statuses).to.deep.equal([400]);
    expect(client.heard).to.include('Host');
  });

  it('OPTIONS says what an address takes, without a key', async () => {
    for (const [path, allow] of [
      [predict, 'POST, OPTIONS'],
      [`/v2/models/${model}/infer`, 'POST, OPTIONS'],
      [`/v2/models/${model}`, 'HEAD, GET, OPTIONS'],
      ['/v2', 'HEAD, GET, OPTIONS'],
      ['/v2/health/ready', 'HEAD, GET, OPTIONS'],
      ['/v1/models', 'HEAD, GET, OPTIONS'],
      ['/metrics', 'HEAD, GET, OPTIONS'],
      ['/embed', 'POST, OPTIONS'],
      ['/info', 'HEAD, GET, OPTIONS'],
      ['/openapi.json', 'HEAD, GET, OPTIONS'],
      ['/docs', 'HEAD, GET, OPTIONS'],
    ] as const) {
      const response = await fetch(locked.url + path, { method: 'OPTIONS' });
      expect(response.status, path).to.equal(204);
      expect(response.headers.get('allow')).to.equal(allow);
      expect(response.headers.has('content-length')).to.equal(false);
      expect(response.headers.has('x-request-id')).to.equal(true);
    }
    expect((await fetch(`${locked.url}/nowhere`, { method: 'OPTIONS' })).status).to.equal(404);
    expect((await fetch(`${locked.url}/v1/models`)).status, 'a key is asked for all the same').to.equal(401);
  });

  it('HEAD is GET without its body, at every door', async () => {
    for (const path of [
      `/v2/models/${model}`,
      '/v2',
      '/v2/health/ready',
      '/v1/models',
      '/metrics',
      '/openapi.json',
    ]) {
      const got = await fetch(gateway.url + path);
      const head = await fetch(gateway.url + path, { method: 'HEAD' });
      expect(head.status, path).to.equal(got.status);
      expect(head.headers.get('content-type')).to.equal(got.headers.get('content-type'));
      expect(Number(head.headers.get('content-length'))).to.be.above(0);
      expect(await head.text()).to.equal('');
    }
  });

  it('an answer is in its one type, whatever a client would rather have', async () => {
    const { status, headers } = await post(
      `${gateway.url}${predict}`,
      { inputs: 'a' },
      { accept: 'text/html' },
    );
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^application\/json/);
  });

  it('every 503 says when to try again', async () => {
    const lonely = await harness.gateway({ models: [uniqueName('nobody')] });
    const ready = await get(`${lonely.url}/v2/health/ready`);
    expect(ready.status).to.equal(503);
    expect(ready.headers.get('retry-after')).to.equal('1');
  });

  it('an idle connection is closed after the time that is set', async () => {
    const short = await harness.gateway({ keepAliveMs: 1000 });
    const client = new RawClient(short).say('GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('it is answered', () => client.statuses.length === 1);
    expect(client.heard).to.match(/\r\nKeep-Alive: timeout=1\r\n/);
    await client.closed;
  });
});
