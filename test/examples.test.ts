import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from './support/browser.js';
import { Cluster } from './support/cluster.js';
import { MINILM } from './support/minilm.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));

describe('the examples', () => {
  let cluster: Cluster;
  let pages: PageServer;

  before(async () => {
    pages = await PageServer.start();
    const env = { MILLRACE_CORS_ORIGINS: pages.origin };
    cluster = await Cluster.start({ models: [MINILM, 'identity'], env });
  });
  after(async () => {
    pages?.stop();
    await cluster?.stop();
  });

  it('ask every door with curl', async () => {
    const said = await run('sh', 'curl.sh', cluster.url);
    const answers = said
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    const [ready, models, native, openai, open, tensors, first, second, ...more] = answers;
    expect(ready).to.deep.equal({ ready: true });
    expect(models.data).to.have.length(2);
    expect(native.outputs[1]).to.have.length(384);
    expect(openai.data[0].embedding).to.have.length(384);
    expect(open.outputs[0]).to.deep.include({ name: 'embedding', shape: [1, 384] });
    expect(tensors.outputs).to.deep.equal([{ fp32_out: [1, 2] }, { fp32_out: [3, 4] }]);
    expect(second).to.deep.equal(first);
    expect(more).to.deep.equal([]);
  });

  it('use Millrace’s client in Node.js', async () => {
    const said = await run(process.execPath, 'node.mjs', cluster.url);
    expect(said).to.match(/Nearest to "stop billing me":\n {2}0\.\d{3} {2}I was charged twice this month\n/);
    expect(said).to.match(/384 numbers in [\d.]+ ms, [\d.]+ of them in the model/);
    expect(said).to.include('int64_out is 9007199254740993, -1\n');
    expect(said).to.include('Given up: AbortError\n');
    expect(said).to.match(/Refused: 400 invalid_input, inputs\[1\], request [0-9a-f-]{36}\n/);
  });

  it('use the openai package in Node.js', async () => {
    const said = await run(process.execPath, 'node-openai.mjs', cluster.url);
    const [near, far] = [...said.matchAll(/^(0\.\d{3}) /gm)].map(([, score]) => Number(score));
    expect(near).to.be.closeTo(0.943, 0.03);
    expect(far).to.be.closeTo(0.257, 0.03);
    expect(said).to.match(/^\d+ tokens$/m);
    expect(said).to.include(`serves ${MINILM}\n`);
    expect(said).to.include('Refused: 400, input\n');
  });

  describe('the page, in a real browser', () => {
    let browser: Browser;
    let page: Page;
    const first = () => page.locator('#list .line').first();
    const status = () => page.locator('#status');

    before(async function () {
      browser = await launchBrowser(this);
    });
    beforeEach(async () => {
      page = await browser.newPage();
      await page.goto(`${pages.origin}/?server=${encodeURIComponent(cluster.url)}`);
      await page.locator('body[data-ready]').waitFor();
    });
    afterEach(() => page.close());
    after(() => browser?.close());

    it('ranks the list by what is typed, and says how long it took', async () => {
      expect(await status().textContent()).to.equal(
        '12 lines embedded by all-minilm-l6-v2, 384 numbers each.',
      );
      await page.locator('#query').pressSequentially('tax paperwork');
      await page.locator('li.best', { hasText: 'Where can I download last year’s receipts?' }).waitFor();
      expect(await first().textContent()).to.equal('Where can I download last year’s receipts?');
      await page.locator('#latency', { hasText: /^\d+ ms$/ }).waitFor();
      const scores = (await page.locator('#list .score').allTextContents()).map(Number);
      expect(scores).to.have.length(12);
      expect(scores).to.deep.equal(scores.toSorted((a, b) => b - a));
      await page.getByRole('button', { name: 'stop billing me' }).click();
      await page.locator('li.best', { hasText: 'I would like to cancel my subscription' }).waitFor();
    });

    it('makes one call of what is typed without a pause', async () => {
      const asked: unknown[] = [];
      page.on('request', (request) => {
        if (request.method() === 'POST') asked.push(request.postDataJSON().input);
      });
      // A string: this code is the page's, whose types are not known here.
      await page.evaluate(`
        for (const text of ['t', 'ta', 'tax']) {
          document.getElementById('query').value = text;
          document.getElementById('query').dispatchEvent(new Event('input'));
        }
      `);
      await page.locator('li.best').waitFor();
      expect(asked).to.deep.equal(['tax']);
    });

    it('gives up the call before when more is typed', async () => {
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      await page.route('**/v1/embeddings', async (route) => {
        if (route.request().postDataJSON().input === 'tax') await held;
        await route.continue().catch(() => undefined);
      });
      const aborted = page.waitForEvent('requestfailed');
      await page.locator('#query').fill('tax');
      await page.waitForRequest('**/v1/embeddings');
      await page.locator('#query').fill('the box was broken');
      expect((await aborted).postDataJSON().input).to.equal('tax');
      release();
      await page.locator('li.best', { hasText: 'My parcel arrived damaged' }).waitFor();
    });

    it('ranks the lines that a visitor puts in their place', async () => {
      await page.locator('summary').click();
      await page.locator('#lines').fill('A poem about the sea\nA recipe for soup\n\n');
      await page.getByRole('button', { name: 'Apply' }).click();
      await page.locator('#status', { hasText: '2 lines embedded' }).waitFor();
      await page.locator('#query').fill('dinner');
      await page.locator('li.best', { hasText: 'A recipe for soup' }).waitFor();
      expect(await page.locator('#list li').count()).to.equal(2);
    });

    it('says what to set where the gateway does not allow the page', async () => {
      const other = await PageServer.start();
      try {
        await page.goto(`${other.origin}/?server=${encodeURIComponent(cluster.url)}`);
        await page.locator('#status.fault').waitFor();
        expect(await status().textContent()).to.contain(`MILLRACE_CORS_ORIGINS=${other.origin}`);
      } finally {
        other.stop();
      }
    });
  });
});

/** What an example prints; rejects with what it said unless it ends well. */
function run(command: string, example: string, url: string): Promise<string> {
  const env = { ...process.env, MILLRACE_URL: url };
  return new Promise((resolve, reject) => {
    execFile(command, [EXAMPLES + example], { env }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}${stderr}`));
      else resolve(stdout);
    });
  });
}

/** `examples/browser/serve.mjs` at a free port. */
class PageServer {
  private constructor(
    readonly origin: string,
    private readonly child: ChildProcess,
  ) {}

  static async start(): Promise<PageServer> {
    const child = spawn(process.execPath, [`${EXAMPLES}browser/serve.mjs`], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(child.stdout), 'line');
    return new PageServer(new URL(String(line).replace('Open ', '')).origin, child);
  }

  stop(): void {
    this.child.kill();
  }
}
