import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import {
  commandOf,
  descendants,
  type MillraceProcess,
  MillraceRunner,
  untilGone,
} from './support/millrace-process.js';

const run = promisify(execFile);
const READY = /Millrace serves (?<url>http:\/\/\S+)/;

describe('millrace up', () => {
  const runner = new MillraceRunner();
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await runner.folder();
  });

  afterEach(() => runner.clean());

  function up(args: string[] = [], env: Record<string, string> = {}): MillraceProcess {
    return runner.run({ args: ['up', ...common(), ...args], env });
  }

  function common(): string[] {
    const folders = ['--data-dir', dataDir, '--cache-dir', join(dataDir, 'cache')];
    return [...folders, '--models', 'identity', '--port', '0', '--grace-ms', '3000'];
  }

  /** The children of one kind that run now. */
  function children(millrace: MillraceProcess, command: string): number[] {
    return descendants(millrace.pid).filter((pid) => commandOf(pid).endsWith(`main.js ${command}`));
  }

  /** Runs the line that start-up prints, as a person would paste it. */
  async function pasteCurl(millrace: MillraceProcess): Promise<string> {
    const [line] = await millrace.says(/curl -s .*/);
    const { stdout } = await run('/bin/sh', ['-c', line]);
    return stdout;
  }

  const answer = '{"model_name":"identity","model_version":"1","outputs":[{"name":"fp32_out"';

  it('serves what it says, and SIGTERM ends every process', async () => {
    const millrace = up();
    await millrace.says(/Stop +Ctrl-C/);
    expect(await pasteCurl(millrace)).to.contain(answer);
    expect(millrace.output()).to.match(/identity +tensor: fp32 FP32\[\*,\*\]/);
    expect(millrace.output()).to.match(/^Starting Redis, the gateway and 1 worker\.\.\.\n/);
    expect(millrace.output()).to.match(/Dashboard +http:\S+\/dashboard\n +user admin\n +password \S{20,}\n/);
    const [, metrics = ''] = await millrace.says(/Worker 1 +(http:\S+\/metrics), http:\S+\/health\/ready/);
    expect((await fetch(metrics)).status).to.equal(200);
    const all = descendants(millrace.pid);
    expect(all).to.have.length.of.at.least(3);
    millrace.signal('SIGTERM');
    expect(await millrace.ended).to.equal(0);
    await untilGone(all);
    expect(millrace.output()).to.match(/\nStopping: .*\nStopped\.\n$/);
  });

  it('stops plainly on a Ctrl-C while it starts', async () => {
    const millrace = up();
    await millrace.says(/^Starting /);
    while (children(millrace, 'worker').length === 0) await new Promise((r) => setTimeout(r, 5));
    millrace.signalGroup('SIGINT');
    expect(await millrace.ended).to.equal(0);
    expect(millrace.output()).to.match(/^Starting .*\nStopping\.\.\.\nStopped\.\n$/);
  });

  it('ends in order when Ctrl-C reaches every process at once', async () => {
    const millrace = up();
    await millrace.says(READY);
    const all = descendants(millrace.pid);
    millrace.signalGroup('SIGINT');
    expect(await millrace.ended).to.equal(0);
    await untilGone(all);
    expect(millrace.output()).not.to.match(/ended with/);
  });

  it('leaves no orphan when it is killed, and starts again on the same folder', async () => {
    const millrace = up();
    await millrace.says(READY);
    const all = descendants(millrace.pid);
    millrace.signal('SIGKILL');
    const again = up();
    await again.says(READY);
    await untilGone(all);
    expect(await pasteCurl(again)).to.contain(answer);
  });

  it('ends when the npm that started it is killed', async () => {
    const npm = runner.run({ args: common(), byNpm: true });
    await npm.says(READY);
    const all = descendants(npm.pid);
    npm.signal('SIGKILL');
    await untilGone(all);
  });

  it('starts a worker, a gateway and Redis again when they are killed, and says so', async () => {
    const millrace = up();
    const { groups } = await millrace.says(READY);
    for (const command of ['worker', 'gateway']) {
      const [pid = 0] = children(millrace, command);
      process.kill(pid, 'SIGKILL');
      const name = command === 'worker' ? 'worker 1' : command;
      await millrace.says(
        new RegExp(`${name} \\(${pid}\\) ended with SIGKILL; starting it again in [0-9.]+ s`),
      );
    }
    const [redis = 0] = descendants(millrace.pid).filter((pid) =>
      /(redis|valkey)-server/.test(commandOf(pid)),
    );
    process.kill(redis, 'SIGKILL');
    await millrace.says(new RegExp(`redis \\(${redis}\\) ended with signal SIGKILL; starting it again`));
    await untilReady(`${groups?.url}/v2/health/ready`);
    expect(await pasteCurl(millrace)).to.contain(answer);
  });

  it('refuses a data folder that another start has', async () => {
    const first = up();
    await first.says(READY);
    const second = up();
    expect(await second.ended).to.equal(1);
    expect(second.output()).to.match(
      new RegExp(`^The data folder \\S+ is in use by process ${first.pid}\\. Stop it .*--data-dir.*\n$`),
    );
  });

  it('refuses a port that another program has, before anything else is done', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    try {
      const millrace = up(['--port', String(port)]);
      expect(await millrace.ended).to.equal(1);
      expect(millrace.output()).to.match(
        new RegExp(`^Port ${port} on 127\\.0\\.0\\.1 is taken by another program\\. .*PORT=\\d+\\)\\.\n$`),
      );
      expect(await readdir(dataDir)).not.to.include('redis');
    } finally {
      other.close();
    }
  });

  it('refuses a Redis that does not answer, without showing its password', async () => {
    const millrace = up([], { REDIS_URL: 'redis://:hunter2@127.0.0.1:1/0' });
    expect(await millrace.ended).to.equal(1);
    expect(millrace.output()).to.match(/^Redis at 127\.0\.0\.1:1 does not answer .*REDIS_URL.*\n$/);
    expect(millrace.output()).not.to.contain('hunter2');
  });

  it('refuses API keys that are none before anything else, and does not show them', async () => {
    const millrace = up(['--api-keys', 'not an entry']);
    expect(await millrace.ended).to.equal(1);
    expect(millrace.output()).to.match(/^--api-keys must be NAME=SHA256HEX .*with 64 hex digits.*\n$/);
  });

  it('refuses a model that is not there, naming those that are', async () => {
    const millrace = up(['--models', 'identity,nobody']);
    expect(await millrace.ended).to.equal(1);
    expect(millrace.output()).to.match(
      /^There is no model "nobody" in \/\S+\/models\. Choose from: .*identity.*\n$/,
    );
  });

  it('shows why a child refuses to start, and ends', async () => {
    const millrace = up(['--host', '0.0.0.0']);
    expect(await millrace.ended).to.equal(1);
    expect(millrace.output().trim().split('\n').at(-1)).to.match(/API.*MILLRACE_API_KEYS/i);
  });
});

describe('millrace gateway and millrace worker', () => {
  const runner = new MillraceRunner();
  const redisUrl = process.env.MILLRACE_TEST_REDIS_URL ?? '';

  after(() => runner.clean());

  it('serve together from one Redis, and drain on SIGTERM', async () => {
    if (redisUrl === '') throw new Error('MILLRACE_TEST_REDIS_URL is not set: run tests by `npm test`.');
    const env = {
      REDIS_URL: redisUrl,
      MILLRACE_MODELS: 'identity',
      MILLRACE_PORT: '0',
      MILLRACE_CACHE_DIR: await runner.folder(),
    };
    const gateway = runner.run({ args: ['gateway'], env });
    const worker = runner.run({ args: ['worker'], env });
    const { groups } = await gateway.says(/Gateway \S+ serves (?<url>http:\S+)\. /);
    await gateway.says(/The dashboard is off: set MILLRACE_DASHBOARD_PASSWORD/);
    await worker.says(/Worker \S+ serves identity; health at http:\S+\. /);
    await untilReady(`${groups?.url}/v2/health/ready`);
    for (const process of [gateway, worker]) {
      process.signal('SIGTERM');
      expect(await process.ended).to.equal(0);
    }
  });

  it('say that they need a Redis', async () => {
    const worker = runner.run({ args: ['worker'] });
    expect(await worker.ended).to.equal(1);
    expect(worker.output()).to.match(/^`millrace worker` needs to know which Redis to use\. Set REDIS_URL/);
  });
});

/** Waits until an address answers 200. */
async function untilReady(url: string): Promise<void> {
  for (;;) {
    const ok = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
