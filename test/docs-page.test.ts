import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { makeApiKey } from '#gateway/admission/api-keys.js';
import { launchBrowser } from './support/browser.js';
import { Cluster, type ClusterProcess } from './support/cluster.js';
import { cosine, KNOWN_COSINES, MINILM } from './support/minilm.js';

const PREDICT = '#operations-Predict-predict';

describe('the page at /docs, in a real browser', function () {
  this.timeout(60_000);
  const alice = makeApiKey('alice');
  let cluster: Cluster;
  let keyed: ClusterProcess;
  let browser: Browser;
  let page: Page;
  /** What a person would see in the browser's console, and requests to other servers. */
  const faults: string[] = [];

  before(async function () {
    browser = await launchBrowser(this);
    cluster = await Cluster.start({ models: [MINILM] });
    keyed = await cluster.addGateway({ MILLRACE_API_KEYS: alice.entry });
    await cluster.untilReady(keyed.url);
  });
  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  beforeEach(async () => {
    page = await browser.newPage();
    faults.length = 0;
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol !== 'data:' && hostname !== '127.0.0.1') faults.push(request.url());
    });
  });
  afterEach(() => page.close());

  /** Opens predict and sends what the page offers; the answer that it shows. */
  async function tryPredict(): Promise<{ status: string; body: string }> {
    await page.locator(`${PREDICT} .opblock-summary-control`).click();
    await page.locator(`${PREDICT} .execute`).click();
    const answer = page.locator(`${PREDICT} .live-responses-table`);
    const status = await answer.locator('tbody .response-col_status').first().textContent();
    const body = await answer.locator('.highlight-code code').first().textContent();
    return { status: status ?? '', body: body ?? '' };
  }

  it('is where the root leads, and sends a request that the model answers', async () => {
    await page.goto(cluster.url);
    expect(new URL(page.url()).pathname).to.equal('/docs');
    const { status, body } = await tryPredict();
    expect(status).to.match(/^200/);
    const [known] = KNOWN_COSINES;
    const { outputs } = JSON.parse(body) as { outputs: number[][] };
    const response = await fetch(`${cluster.url}/v1/models/${MINILM}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs: known.a }),
    });
    const direct = (await response.json()) as { outputs: number[][] };
    expect(cosine(outputs[0] ?? [], direct.outputs[0] ?? [])).to.be.closeTo(1, 1e-4);
    expect(faults).to.deep.equal([]);
  });

  it('shows every operation, and asks nothing of other servers', async () => {
    await page.goto(`${cluster.url}/docs`);
    await page.locator(PREDICT).waitFor();
    const document = (await (await fetch(`${cluster.url}/openapi.json`)).json()) as { paths: object };
    const count = Object.values(document.paths).flatMap((item: object) => Object.keys(item)).length;
    expect(await page.locator('.opblock').count()).to.equal(count);
    expect(faults).to.deep.equal([]);
  });

  it('sends the API key that a person gives', async () => {
    await page.goto(`${keyed.url}/docs`);
    await page.locator('.auth-wrapper .authorize').click();
    const dialog = page.locator('.dialog-ux');
    await dialog.locator('input').first().fill(alice.key);
    await dialog.locator('button.authorize').first().click();
    await dialog.locator('.btn-done').first().click();
    expect((await tryPredict()).status).to.match(/^200/);
    expect(faults).to.deep.equal([]);
  });

  it('shows what is refused without one', async () => {
    await page.goto(`${keyed.url}/docs`);
    const { status, body } = await tryPredict();
    expect(status).to.contain('401');
    expect(body).to.contain('An API key is required');
  });
});
