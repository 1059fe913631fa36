import { BULL_PREFIX, type JobData, jobId, PRIORITIES, queueName } from '@millrace/shared';
import { Queue } from 'bullmq';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { DashboardClient } from '../test-support/dashboard-client.js';
import { get, Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until } from '../test-support/redis.js';
import type { StandInWorker } from '../test-support/stand-in-worker.js';
import { html } from './html.js';

const PASSWORD = 'correct horse';
const ASYNC = { prefer: 'respond-async' };
const NOBODY = '00000000-0000-4000-8000-000000000000';

interface Job {
  id: string;
  state: string;
}

describe('the dashboard’s page of a request', () => {
  let harness: Harness;
  let worker: StandInWorker;
  let gateway: Gateway;
  let dashboard: DashboardClient;
  let queue: Queue<JobData>;
  const model = uniqueName('shown');

  before(async () => {
    harness = new Harness();
    worker = await harness.worker(textModel(model), {
      verdict: (text) =>
        text.startsWith('bad')
          ? { status: 'failed', code: 'text_too_long', message: 'Too <b>long</b>.' }
          : { status: 'ok' },
    });
    gateway = await harness.gateway({ dashboardPassword: PASSWORD, dashboardAdmin: true, maxJobItems: 4 });
    dashboard = await DashboardClient.login(gateway, PASSWORD);
    const redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    queue = new Queue(queueName(model, '1'), { connection: redis, prefix: BULL_PREFIX });
    harness.onRelease(() => queue.close());
    await until('the model is served', async () => (await predict('here?')).status === 200);
  });
  after(() => harness.release());

  const predict = (inputs: unknown, headers: Record<string, string> = {}) =>
    post<Job>(`${gateway.url}/v1/models/${model}/predict`, { inputs }, headers);
  const end = (id: string) => get<Job>(`${gateway.url}/v1/jobs/${id}?wait=10`);
  const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);

  it('shows a kept request with all its parts, their jobs, and where their time went', async () => {
    const { body } = await predict(texts(6), ASYNC);
    await end(body.id);
    const response = await dashboard.ask(`/requests/${body.id}`);
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-security-policy')).to.include("default-src 'self'");
    const shown = await response.text();
    for (const told of [model, 'anonymous', 'interactive', '6 of 6', '4 ok', '2 ok', worker.id]) {
      expect(shown).to.include(told);
    }
    for (const first of [0, 4]) {
      const job = encodeURIComponent(jobId(body.id, first));
      expect(shown).to.include(`/dashboard/queue/${encodeURIComponent(queue.name)}/${job}"`);
    }
    expect(shown).to.match(/infer\s\d/);
    expect(shown).not.to.include('<script');
  });

  it('shows why a request failed, as text', async () => {
    const { body } = await predict('bad', ASYNC);
    await end(body.id);
    const shown = await dashboard.page(`/requests/${body.id}`);
    expect(shown).to.include('text_too_long').and.include('Too &lt;b&gt;long&lt;/b&gt;.');
    expect(String(html`<a title="${`"'<>&`}">`.text)).to.equal('<a title="&quot;&#39;&lt;&gt;&amp;">');
  });

  it('finds a request that was not kept while its jobs are there', async () => {
    const response = await fetch(`${gateway.url}/v1/models/${model}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs: texts(6) }),
    });
    const id = response.headers.get('x-request-id') ?? '';
    await until('it is completed', async () => (await queue.getJobState(jobId(id, 4))) === 'completed');
    const shown = await dashboard.page(`/requests/${id}`);
    expect(shown).to.include(jobId(id, 0)).and.include(jobId(id, 4)).and.include('was not kept');
  });

  it('lists the requests that travelled in one job, and finds each of them', async () => {
    const ids = ['1', '2'].map((digit) => NOBODY.replaceAll('0', digit));
    const job = '33333333-3333-4333-8333-333333333333';
    const { data } = (await queue.getCompleted(0, 0))[0] ?? {};
    const [part] = data?.parts ?? [];
    if (!data || !part) throw new Error('no job was completed');
    await worker.pause();
    const parts = ids.map((requestId) => ({ ...part, requestId }));
    await queue.add('infer', { ...data, parts }, { jobId: job, priority: PRIORITIES.bulk });
    const shown = await dashboard.page(`/requests/${job}`);
    for (const id of ids) {
      expect(shown).to.include(`/dashboard/requests/${id}`);
      expect(await dashboard.page(`/requests/${id}`)).to.include(job);
    }
    const list = await dashboard.page(
      `/api/queues?activeQueue=${encodeURIComponent(queue.name)}&status=prioritized&page=1`,
    );
    expect(list).to.include(`"href":"/dashboard/requests/${job}"`).and.include('2 requests');
    worker.resume();
  });

  it('says plainly when nothing is kept, and what is no id', async () => {
    const unknown = await dashboard.ask(`/requests/${NOBODY}`);
    expect(unknown.status).to.equal(404);
    expect(await unknown.text()).to.include('Nothing is kept');
    const nonsense = await dashboard.ask('/requests/%3Cscript%3E');
    expect(nonsense.status).to.equal(404);
    expect(await nonsense.text())
      .to.include('is no id')
      .and.not.include('<script');
    const sought = await dashboard.ask(`/requests?id=${NOBODY.toUpperCase()}.4`);
    expect(sought.headers.get('location')).to.equal(`/dashboard/requests/${NOBODY}`);
    expect((await dashboard.ask('/requests?id=x')).status).to.equal(404);
  });

  it('is reached from the list of all that are kept, and from its jobs', async () => {
    const { body } = await predict('listed', ASYNC);
    await end(body.id);
    expect(await dashboard.page('/requests')).to.include(`/dashboard/requests/${body.id}"`);
    expect(await dashboard.page('/requests?state=done')).to.include(body.id);
    expect(await dashboard.page('/requests?state=running')).not.to.include(body.id);
    const job = await dashboard.page(
      `/api/queues/${encodeURIComponent(queue.name)}/${encodeURIComponent(jobId(body.id, 0))}`,
    );
    expect(job).to.include(`"href":"/dashboard/requests/${body.id}"`);
  });

  it('does not show one whose time is over as if it had failed, nor as if nothing had been answered', async () => {
    const { body } = await predict('brief', { ...ASYNC, 'millrace-keep-ms': '1500' });
    expect((await end(body.id)).body.state).to.equal('done');
    await until('its time is over', async () =>
      (await dashboard.page('/requests?state=expired')).includes(body.id),
    );
    for (const path of ['/requests?state=expired', `/requests/${body.id}`]) {
      expect(await dashboard.page(path), path)
        .not.to.include('0 of 1')
        .and.not.match(/\.expired[^{]*{ color: var\(--danger\)/);
    }
    expect(await dashboard.page(`/requests/${body.id}`)).to.include('Its time is over');
  });

  it('cancels for whoever may change something, by a form of the same session', async () => {
    const later = { ...ASYNC, 'millrace-not-before': new Date(Date.now() + 600_000).toISOString() };
    const { body } = await predict('later', later);
    const shows = await harness.gateway({ dashboardPassword: PASSWORD });
    const reader = await DashboardClient.login(shows, PASSWORD);
    expect(await reader.page(`/requests/${body.id}`)).not.to.include('Cancel the request');
    expect((await reader.cancel(body.id)).status).to.equal(403);
    const foreign = await dashboard.cancel(body.id, 'A'.repeat(43));
    expect(foreign.status).to.equal(403);
    const still = await get<Job>(`${gateway.url}/v1/jobs/${body.id}`);
    expect(still.body.state).to.equal('scheduled');
    const done = await dashboard.cancel(body.id);
    expect(done.status).to.equal(303);
    expect((await end(body.id)).body.state).to.equal('cancelled');
    const shown = await dashboard.page(`/requests/${body.id}`);
    expect(shown).to.include('cancelled').and.not.include('Cancel the request');
  });

  it('is behind the login', async () => {
    for (const path of ['/requests', `/requests/${NOBODY}`]) {
      const response = await fetch(`${gateway.url}/dashboard${path}`, { redirect: 'manual' });
      expect(response.headers.get('location')).to.equal('/dashboard/login');
    }
    expect((await fetch(`${gateway.url}/dashboard/favicon.svg`)).headers.get('content-type')).to.equal(
      'image/svg+xml',
    );
  });
});
