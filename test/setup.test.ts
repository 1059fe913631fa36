import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type MillraceProcess, MillraceRunner, untilGone } from './support/millrace-process.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Stands in for npm: starts a process of its own, as install scripts are, tells both pids, and goes on. */
const NPM = `
const { spawn } = require('node:child_process');
const script = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
console.log('npm ' + process.argv.slice(2).join(' ') + ': ' + process.pid + ' ' + script.pid + ' run');
setInterval(() => {}, 1000);
`;
const INSTALLING = /npm (?<args>.*): (?<npm>\d+) (?<script>\d+) run/;

describe('setting up a clone', () => {
  const runner = new MillraceRunner();
  let clone: string;

  beforeEach(async () => {
    clone = await mkdtemp(join(tmpdir(), 'millrace-clone-'));
    await cp(join(ROOT, 'scripts'), join(clone, 'scripts'), { recursive: true });
    await writeFile(join(clone, 'npm.js'), NPM);
  });

  afterEach(async () => {
    await runner.clean();
    await rm(clone, { recursive: true, force: true });
  });

  function start(): MillraceProcess {
    const env = { npm_execpath: join(clone, 'npm.js') };
    return runner.run({ args: [], program: join(clone, 'scripts', 'start.mjs'), env });
  }

  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`ends with everything that npm started on ${signal}`, async () => {
      const first = start();
      const { groups } = await first.says(INSTALLING);
      first.signalGroup(signal);
      expect(await first.ended).to.equal(exitCode);
      expect(first.output()).to.match(/Stopping\.\.\.\nStopped\.\n$/);
      await untilGone([Number(groups?.npm), Number(groups?.script)]);
    });
  }

  it('waits for another start that is at it, and then does it itself', async () => {
    const first = start();
    await first.says(INSTALLING);
    const second = start();
    await second.says(new RegExp(`Waiting for process ${first.pid}, which is installing`));
    expect(second.output()).not.to.match(INSTALLING);
    first.signal('SIGINT');
    await second.says(INSTALLING);
    expect(await readFile(join(clone, '.cache', 'set-up'), 'utf8')).to.match(new RegExp(`^${second.pid}\\b`));
  });

  it('waits for an npm whose start was killed', async () => {
    const first = start();
    const { groups } = await first.says(INSTALLING);
    first.signal('SIGKILL');
    await untilGone([first.pid]);
    const second = start();
    await second.says(new RegExp(`Waiting for process ${groups?.npm}, `));
    process.kill(Number(groups?.npm), 'SIGKILL');
    process.kill(Number(groups?.script), 'SIGKILL');
    await second.says(INSTALLING);
  });

  it('shows no spinner of npm in its own lines', async () => {
    const { groups } = await start().says(INSTALLING);
    expect(groups?.args).to.contain('ci').and.to.contain('--no-progress');
  });

  it("ends `npm test` with the compiler's fault, before any test", async () => {
    const nothing = JSON.stringify({ packages: {} });
    const compiler = join(clone, 'node_modules', 'typescript', 'bin');
    await mkdir(compiler, { recursive: true });
    await writeFile(join(clone, 'package-lock.json'), nothing);
    await writeFile(join(clone, 'node_modules', '.package-lock.json'), nothing);
    await writeFile(join(compiler, 'tsc'), `console.log('a.ts(1,1): error'); process.exitCode = 1;`);
    const tests = runner.run({ args: [], program: join(clone, 'scripts', 'test.mjs') });
    expect(await tests.ended).to.equal(1);
    expect(tests.output()).to.match(
      /^a\.ts\(1,1\): error\nFAILED: not everything compiles.*\n0 passed, 1 failed\n$/,
    );
  });
});
