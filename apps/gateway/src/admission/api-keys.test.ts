import { readKeyEntries, StartupError } from '@millrace/shared';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';
import { ApiKeys, makeApiKey } from './api-keys.js';

describe('API keys', () => {
  it('are 256 random bits, of which only the hash is kept', () => {
    const { key, entry } = makeApiKey('alice');
    expect(key).to.match(/^mr_[A-Za-z0-9_-]{43}$/);
    expect(entry).to.match(/^alice=[0-9a-f]{64}$/);
    expect(makeApiKey('alice').key).not.to.equal(key);
  });

  it('refuse names and scopes that cannot be', () => {
    expect(() => makeApiKey('a=b')).to.throw(StartupError, /"a=b" can't name an API key/);
    expect(() => makeApiKey('a', ['infer', 'root'])).to.throw(StartupError, /no scope "root"/);
  });

  it('are found by the key alone, and none by what is not one', () => {
    const alice = makeApiKey('alice');
    const keys = new ApiKeys(readKeyEntries([alice.entry, makeApiKey('bob').entry]));
    expect(keys.find(alice.key)?.name).to.equal('alice');
    for (const other of ['', `${alice.key} `, alice.entry.slice(6)])
      expect(keys.find(other)).to.equal(undefined);
  });

  describe('at the doors', () => {
    const harness = new Harness();
    const model = uniqueName('keys');
    const alice = makeApiKey('alice');
    const bob = makeApiKey('bob');
    const ops = makeApiKey('ops', ['admin', 'jobs']);
    const tenants: string[] = [];
    let gateway: Gateway;

    before(async () => {
      await harness.worker(textModel(model), { before: (part) => void tenants.push(part.tenant) });
      gateway = await harness.gateway({
        apiKeys: [alice.entry, bob.entry, ops.entry],
        models: [model],
        host: '0.0.0.0',
      });
    });
    after(() => harness.release());

    it('let their owner in by either header', async () => {
      const url = `${gateway.url}/v1/models/${model}/predict`;
      const bearer = await post(url, { inputs: 'a' }, { authorization: `Bearer ${alice.key}` });
      const header = await post(url, { inputs: 'a' }, { 'x-api-key': bob.key });
      expect([bearer.status, header.status]).to.deep.equal([200, 200]);
      expect(tenants).to.deep.equal(['alice', 'bob']);
    });

    it('are asked for at every door, in its shape', async () => {
      const native = await post(`${gateway.url}/v1/models/${model}/predict`, { inputs: 'a' });
      expect(native.status).to.equal(401);
      expect(native.headers.get('www-authenticate')).to.equal('Bearer');
      expect(native.body.code).to.equal('unauthorized');
      const wrong = { authorization: `Bearer ${makeApiKey('alice').key}` };
      const open = await post(`${gateway.url}/v2/models/${model}/infer`, {}, wrong);
      expect(open.status).to.equal(401);
      expect(Object.keys(open.body)).to.deep.equal(['error']);
      for (const path of ['/v1/models', '/v2', `/v2/models/${model}`, '/nothing']) {
        expect((await get(gateway.url + path)).status, path).to.equal(401);
      }
    });

    it('are asked for by every address but health, documentation and the login page', async () => {
      const open: string[] = [];
      const document = await get<{ paths: Record<string, unknown> }>(`${gateway.url}/openapi.json`);
      const documented = Object.keys(document.body.paths).map((path) =>
        path
          .replace('{model}', model)
          .replace('{asset}', 'x.js')
          .replaceAll(/\{\w+\}/g, '1'),
      );
      expect(documented).to.include.members(['/v1/embeddings', '/embed', '/v1/jobs/1']);
      const board = ['/dashboard', '/dashboard/api/queues', '/dashboard/static/js/x.js', '/dashboard/login'];
      for (const path of ['/nothing', ...documented, ...board]) {
        for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
          const { status } = await fetch(gateway.url + path, { method, redirect: 'manual' });
          if (status !== 401 && status !== 303 && status !== 405) open.push(`${method} ${path}`);
        }
        // Which methods an address takes is no secret; a browser asks without a key.
        const options = await fetch(gateway.url + path, { method: 'OPTIONS' });
        if (documented.includes(path)) expect(options.status, `OPTIONS ${path}`).to.equal(204);
      }
      expect(open).to.have.members([
        'GET /',
        'GET /health',
        'GET /docs',
        'GET /openapi.json',
        'GET /v2/health/live',
        'GET /v2/health/ready',
        'GET /dashboard/login',
      ]);
    });

    it('must have the scope "infer", which the answer names', async () => {
      const native = await post(
        `${gateway.url}/v1/models/${model}/predict`,
        { inputs: 'a' },
        { 'x-api-key': ops.key },
      );
      expect(native.status).to.equal(403);
      expect(native.body).to.include({ code: 'forbidden', detail: 'This API key lacks the scope "infer".' });
      const open = await get(`${gateway.url}/v2/models/${model}`, { 'x-api-key': ops.key });
      expect(open.status).to.equal(403);
      expect(open.body.error).to.include('"infer"');
    });

    it('of any scope read metrics and learn of an address that is not there', async () => {
      const metrics = await fetch(`${gateway.url}/metrics`, { headers: { 'x-api-key': ops.key } });
      expect(metrics.status).to.equal(200);
      expect((await get(`${gateway.url}/nothing`, { 'x-api-key': ops.key })).status).to.equal(404);
    });

    it('are not asked for by health, and by metrics only where others can reach them', async () => {
      expect((await get(`${gateway.url}/v2/health/live`)).status).to.equal(200);
      expect((await get(`${gateway.url}/v2/health/ready`)).status).to.equal(200);
      expect((await get(`${gateway.url}/metrics`)).status).to.equal(401);
      const metrics = await fetch(`${gateway.url}/metrics`, { headers: { 'x-api-key': bob.key } });
      expect(metrics.status).to.equal(200);
    });
  });
});
