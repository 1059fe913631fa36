import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';

const APP = 'https://app.example.com';
const OTHER = 'https://other.example.com';

describe('scripts of other origins', () => {
  const harness = new Harness();
  const model = uniqueName('cors');
  const path = `/v1/models/${model}/predict`;
  const apiKeys = [`someone=${'0a'.repeat(32)}`];
  let none: Gateway;
  let listed: Gateway;
  let every: Gateway;

  before(async () => {
    await harness.worker(textModel(model));
    none = await harness.gateway();
    listed = await harness.gateway({ corsOrigins: `${APP},http://localhost:5173`, apiKeys });
    every = await harness.gateway({ corsOrigins: '*' });
  });
  after(() => harness.release());

  const preflight = (gateway: Gateway, origin: string, at = path): Promise<Response> =>
    fetch(gateway.url + at, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-os',
      },
    });
  const ask = (gateway: Gateway, origin: string, body: object): Promise<Response> =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { origin, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  function corsHeaders(response: Response): string[] {
    return [...response.headers.keys()].filter((name) => name.startsWith('access-control-'));
  }

  it('may not ask by default', async () => {
    const response = await preflight(none, APP);
    expect(response.status).to.equal(204);
    expect(corsHeaders(response)).to.deep.equal([]);
    expect(corsHeaders(await ask(none, APP, { inputs: 'a' }))).to.deep.equal([]);
  });

  it('may ask when they are listed, without a key for the question whether', async () => {
    const { status, headers } = await preflight(listed, APP);
    expect(status).to.equal(204);
    expect(headers.get('access-control-allow-origin')).to.equal(APP);
    expect(headers.get('access-control-allow-methods')).to.include('POST').and.include('DELETE');
    expect(headers.get('access-control-allow-headers')).to.equal('authorization,content-type,x-stainless-os');
    expect(headers.get('access-control-max-age')).to.equal('7200');
    expect(headers.get('vary')).to.equal('Origin');
    expect(headers.has('access-control-allow-credentials')).to.equal(false);
  });

  it('may read answers and errors, and the headers that say more', async () => {
    const refused = await ask(listed, APP, { inputs: 'a' });
    expect(refused.status).to.equal(401);
    expect(refused.headers.get('access-control-allow-origin')).to.equal(APP);
    const answered = await ask(every, OTHER, { inputs: 'a' });
    expect(answered.status).to.equal(200);
    expect(answered.headers.get('access-control-allow-origin')).to.equal('*');
    expect(answered.headers.get('access-control-expose-headers'))
      .to.include('Server-Timing')
      .and.include('Retry-After')
      .and.include('Inference-Header-Content-Length')
      .and.include('Preference-Applied')
      .and.include('ETag');
    expect(answered.headers.has('vary')).to.equal(false);
  });

  it('that are not listed get no leave, and caches are told that others may', async () => {
    for (const origin of [OTHER, 'null', `${APP}.evil.com`, APP.replace('https', 'http')]) {
      for (const response of [await preflight(listed, origin), await ask(listed, origin, { inputs: 'a' })]) {
        expect(corsHeaders(response), origin).to.deep.equal([]);
        expect(response.headers.get('vary')).to.equal('Origin');
      }
    }
  });

  it('never get at the dashboard', async () => {
    expect(corsHeaders(await preflight(every, OTHER, '/dashboard/api/queues'))).to.deep.equal([]);
    const login = await fetch(`${every.url}/dashboard/login`, { headers: { origin: OTHER } });
    expect(corsHeaders(login)).to.deep.equal([]);
  });

  it('can break no header by the names they would send', async () => {
    const response = await fetch(every.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: APP,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'a b;c',
      },
    });
    expect(response.status).to.equal(204);
    expect(response.headers.has('access-control-allow-headers')).to.equal(false);
  });
});
