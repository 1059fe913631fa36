import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectRedis, jobId, payloadKey, queueName } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from './support/browser.js';
import { post, until } from './support/client.js';
import { Cluster } from './support/cluster.js';

const MODEL = 'identity';
const QUEUE = queueName(MODEL, '1');
const PASSWORD = 'correct horse';
/** Too large to travel inside its job. */
const LARGE = 'x'.repeat(20_000);
const PHONE = { width: 375, height: 700 };

interface Job {
  id: string;
  state: string;
  result?: { outputs: unknown[] };
}

describe('the dashboard, in a real browser', function () {
  this.timeout(60_000);
  let cluster: Cluster;
  let redis: Redis;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let receiver: Server;
  const told: { id: string; type: string }[] = [];
  /** What a person would see in the browser's console. */
  const faults: string[] = [];

  before(async function () {
    browser = await launchBrowser(this);
    receiver = createServer((req, res) => {
      let body = '';
      req.on('data', (chunk) => {
        body += chunk;
      });
      req.on('end', () => {
        const { type } = JSON.parse(body) as { type: string };
        told.push({ id: String(req.headers['webhook-id']), type });
        res.end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    cluster = await Cluster.start({
      models: [MODEL],
      env: {
        MILLRACE_DASHBOARD_PASSWORD: PASSWORD,
        MILLRACE_DASHBOARD_ADMIN: 'true',
        MILLRACE_MAX_JOB_ITEMS: '4',
        MILLRACE_CALLBACK_SECRET: 'a secret of some length',
        MILLRACE_CALLBACK_ALLOW_HTTP: 'true',
        MILLRACE_CALLBACK_ALLOW_PRIVATE: 'true',
      },
    });
    redis = connectRedis(cluster.redis.url, 'worker', 'test');
    context = await browser.newContext();
    page = await context.newPage();
    watch(page);
    context.on('page', watch);
    await page.goto(`${cluster.url}/dashboard/login`);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForURL(/dashboard\/?$/);
  });
  after(async () => {
    await browser?.close();
    redis?.disconnect();
    await cluster?.stop();
    receiver?.close();
  });
  beforeEach(() => void faults.splice(0));

  function watch(opened: Page): void {
    opened.on('console', (message) => {
      // The fonts that bull-board would fetch from elsewhere stay blocked.
      if (message.type() === 'error' && !message.text().includes('fonts.googleapis.com')) {
        faults.push(message.text());
      }
    });
    opened.on('pageerror', (error) => faults.push(error.message));
  }

  const send = async (inputs: unknown, headers: Record<string, string> = {}): Promise<Job> => {
    const response = await post(
      `${cluster.url}/v1/models/${MODEL}/predict`,
      { inputs },
      {
        headers: { prefer: 'respond-async', ...headers },
      },
    );
    return (await response.json()) as Job;
  };
  const read = async (id: string, query = ''): Promise<Job> =>
    (await (await fetch(`${cluster.url}/v1/jobs/${id}${query}`)).json()) as Job;
  const inTime = (ms: number) => ({ 'millrace-not-before': new Date(Date.now() + ms).toISOString() });
  const items = (count: number) => Array.from({ length: count }, (_, i) => ({ fp32: [i, i + 0.5] }));

  it('leads from the search to a request, its parts, and from there to a job and back', async () => {
    const { id } = await send(items(6));
    await read(id, '?wait=10');
    await page.goto(`${cluster.url}/dashboard/requests`);
    await page.getByLabel('Id of a request').fill(`${id}.4`);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/dashboard/requests/${id}`);
    const parts = page.getByRole('region', { name: 'Parts of the request' });
    expect(await parts.locator('tbody tr').count()).to.equal(2);
    expect(await parts.textContent())
      .to.include('4 ok')
      .and.include('infer\u00a0');
    await until(async () => {
      await page.getByRole('link', { name: 'Look again' }).click();
      return (await parts.textContent())?.split('completed').length === 3;
    });
    await parts.getByRole('link', { name: `Job ${jobId(id, 4)}` }).click();
    const link = page.locator(`a[href="/dashboard/requests/${id}"]`);
    await link.waitFor();
    const [opened] = await Promise.all([context.waitForEvent('page'), link.click()]);
    await opened.getByRole('heading', { name: `Request ${id}` }).waitFor();
    await opened.close();
    expect(faults).to.deep.equal([]);
  });

  it('fits a phone, and is used by keyboard alone', async () => {
    const { id } = await send(items(6), inTime(3_600_000));
    const phone = await context.newPage();
    await phone.setViewportSize(PHONE);
    for (const path of ['/dashboard/requests', `/dashboard/requests/${id}`]) {
      await phone.goto(cluster.url + path);
      const width = await phone.evaluate('document.documentElement.scrollWidth');
      expect(width, path).to.be.at.most(PHONE.width);
    }
    const focused = (): Promise<string> => phone.evaluate('document.activeElement.outerHTML');
    while (!(await focused()).startsWith('<button class="danger">')) await phone.keyboard.press('Tab');
    await phone.keyboard.press('Enter');
    await phone.locator('h1 .cancelled').waitFor();
    expect((await read(id)).state).to.equal('cancelled');
    await phone.close();
    expect(faults).to.deep.equal([]);
  });

  it('sends a failed job again: its request, its result and its callback follow', async () => {
    const { port } = receiver.address() as AddressInfo;
    const { id } = await send(
      { bytes: [LARGE] },
      { ...inTime(1500), 'millrace-callback': `http://127.0.0.1:${port}/` },
    );
    const key = payloadKey(QUEUE, id, 0);
    const input = await redis.getBuffer(key);
    if (!input) throw new Error('the input is not stored beside the job');
    await redis.unlink(key);
    expect((await read(id, '?wait=20')).state).to.equal('failed');
    await until(() => told.length === 1);
    await redis.set(key, input, 'PX', 60_000);
    await page.goto(
      `${cluster.url}/dashboard/queue/${encodeURIComponent(QUEUE)}/${encodeURIComponent(jobId(id, 0))}`,
    );
    await page.getByText('no longer stored').first().waitFor();
    expect(await page.locator('body').textContent()).not.to.include('job-consumer');
    await page.locator('button:has(svg.lucide-refresh-cw)').click();
    await page.getByRole('button', { name: 'Confirm' }).click();
    await until(async () => (await read(id)).state === 'done');
    expect((await read(id)).result?.outputs).to.have.length(1);
    await until(() => told.length === 2);
    expect(told).to.deep.equal([
      { id, type: 'job.failed' },
      { id: `${id}.1`, type: 'job.done' },
    ]);
    await page.goto(`${cluster.url}/dashboard/requests/${id}`);
    const row = page.getByRole('region', { name: 'Parts of the request' }).locator('tbody tr');
    expect((await row.locator('td').allTextContents())[7]).to.equal('1');
    expect(faults).to.deep.equal([]);
  });
});
