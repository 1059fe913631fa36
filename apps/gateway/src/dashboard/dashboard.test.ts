import { request as httpRequest } from 'node:http';
import { expect } from 'chai';
import { makeApiKey } from '../admission/api-keys.js';
import type { Gateway } from '../gateway.js';
import { Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

const PASSWORD = 'correct horse';

describe('the dashboard', () => {
  const harness = new Harness();
  const model = uniqueName('board');
  const queue = encodeURIComponent(`{${model}@1}`);
  let gateway: Gateway;
  const login = (at: Gateway, password: string, user = 'admin'): Promise<Response> =>
    fetch(`${at.url}/dashboard/login`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ user, password }),
    });
  const cookieOf = (response: Response): string =>
    (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const open = (at: Gateway, path: string, cookie: string, method = 'GET'): Promise<Response> =>
    fetch(`${at.url}/dashboard${path}`, { method, redirect: 'manual', headers: { cookie } });

  before(async () => {
    await harness.worker(textModel(model));
    gateway = await harness.gateway({ dashboardPassword: PASSWORD });
  });
  after(() => harness.release());

  it('is behind a login', async () => {
    const page = await fetch(`${gateway.url}/dashboard/`, { redirect: 'manual' });
    expect(page.status).to.equal(303);
    expect(page.headers.get('location')).to.equal('/dashboard/login');
    expect((await open(gateway, '/api/queues', '')).status).to.equal(401);
    expect((await open(gateway, '/api/queues', 'millrace_session=a.9999999999999.b')).status).to.equal(401);
    expect((await open(gateway, '/static/js/x.js', '')).status).to.equal(303);
    expect(await (await fetch(`${gateway.url}/dashboard/login`)).text()).to.include('type="password"');
  });

  it('refuses a wrong password and a wrong user', async () => {
    expect((await login(gateway, 'wrong')).status).to.equal(401);
    expect((await login(gateway, PASSWORD, 'root')).status).to.equal(401);
    expect((await login(gateway, '')).status).to.equal(401);
  });

  it('gives a session that scripts and other sites cannot use, and ends it', async () => {
    const answer = await login(gateway, PASSWORD);
    expect(answer.status).to.equal(303);
    expect(answer.headers.get('set-cookie')).to.include('HttpOnly').and.include('SameSite=Strict');
    const cookie = cookieOf(answer);
    const page = await open(gateway, '/', cookie);
    expect(page.status).to.equal(200);
    expect(page.headers.get('x-powered-by')).to.equal(null);
    expect(page.headers.get('content-security-policy')).to.include("default-src 'self'");
    await open(gateway, '/logout', cookie);
    expect((await open(gateway, '/api/queues', cookie)).status).to.equal(401);
  });

  it('shows queues and jobs, also of a model that appears later', async () => {
    await post(`${gateway.url}/v1/models/${model}/predict`, { inputs: 'a' });
    const cookie = cookieOf(await login(gateway, PASSWORD));
    const list = (await (await open(gateway, '/api/queues', cookie)).json()) as {
      queues: { name: string }[];
    };
    expect(list.queues.map((q) => q.name)).to.include(`{${model}@1}`);
    const one = await open(gateway, `/api/queues?activeQueue=${queue}&status=completed&page=1`, cookie);
    const { queues } = (await one.json()) as {
      queues: { name: string; jobs: { data: { model: string } }[] }[];
    };
    expect(queues.find((q) => q.name === `{${model}@1}`)?.jobs[0]?.data.model).to.equal(model);
  });

  it('changes nothing unless the admin setting is on', async () => {
    const later = uniqueName('board-later');
    const worker = new StandInWorker(textModel(later));
    await worker.announce();
    harness.onRelease(() => worker.stop());
    const admin = await harness.gateway({ dashboardPassword: PASSWORD, dashboardAdmin: true });
    const pause = `/api/queues/${encodeURIComponent(`{${later}@1}`)}/pause`;
    const mine = cookieOf(await login(gateway, PASSWORD));
    expect((await open(gateway, pause, mine, 'PUT')).status).to.equal(403);
    // A session belongs to the process that gave it.
    expect((await open(admin, pause, mine, 'PUT')).status).to.equal(401);
    const theirs = cookieOf(await login(admin, PASSWORD));
    expect((await open(admin, pause, theirs, 'PUT')).status).to.equal(200);
  });

  it('limits failed attempts', async () => {
    const guarded = await harness.gateway({ dashboardPassword: PASSWORD });
    for (let i = 0; i < 10; i++) expect((await login(guarded, `guess ${i}`)).status).to.equal(401);
    const limited = await login(guarded, PASSWORD);
    expect(limited.status).to.equal(429);
    expect(Number(limited.headers.get('retry-after'))).to.be.within(1, 60);
  });

  it('limits attempts that are sent side by side, each held back until all have begun', async () => {
    const guarded = await harness.gateway({ dashboardPassword: PASSWORD });
    const release: (() => void)[] = [];
    const statuses = Array.from({ length: 40 }, (_, i) => {
      const form = `user=admin&password=guess${i}`;
      return new Promise<number>((resolve, reject) => {
        const request = httpRequest(`${guarded.url}/dashboard/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': form.length },
        });
        request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
        request.on('error', reject);
        request.write(form.slice(0, 5));
        release.push(() => request.end(form.slice(5)));
      });
    });
    for (const finish of release) finish();
    const judged = (await Promise.all(statuses)).filter((status) => status === 401);
    expect(judged).to.have.length(10);
  });

  it('lets in who has an API key of the scope admin, by its name, and nobody without a password else', async () => {
    const [ops, user] = [makeApiKey('ops', ['admin']), makeApiKey('user')];
    const keyed = await harness.gateway({ apiKeys: [ops.entry, user.entry] });
    expect((await login(keyed, ops.key, 'ops')).status).to.equal(303);
    expect((await login(keyed, ops.key, 'admin')).status).to.equal(401);
    expect((await login(keyed, user.key, 'user')).status).to.equal(401);
    expect((await login(keyed, '', 'admin')).status).to.equal(401);
    const cookie = cookieOf(await login(keyed, ops.key, 'ops'));
    expect((await open(keyed, '/api/queues', cookie)).status).to.equal(200);
  });

  it('is off without a password or such a key, and says so', async () => {
    const off = await harness.gateway({ apiKeys: [makeApiKey('user').entry] });
    const page = await fetch(`${off.url}/dashboard`);
    expect(page.status).to.equal(404);
    expect(await page.text()).to.include('MILLRACE_DASHBOARD_PASSWORD');
  });
});
