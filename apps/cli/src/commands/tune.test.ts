import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { Host } from '../host.js';
import { buildProgram } from '../program.js';

const MAIN = join(import.meta.dirname, '../main.js');
const MODELS = join(import.meta.dirname, '../../../../models');

describe('millrace profile and tune', function () {
  this.timeout(120_000);
  let folder: string;
  let said: string[];
  let stop: AbortController;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-tune-'));
    said = [];
    stop = new AbortController();
  });
  afterEach(() => rm(folder, { recursive: true, maxRetries: 5 }));

  async function run(...args: string[]): Promise<number> {
    let code = -1;
    const host: Host = {
      env: { PATH: process.env.PATH },
      mainFile: MAIN,
      version: '0',
      pid: process.pid,
      isTerminal: false,
      say: (line) => said.push(line),
      stdin: () => Readable.from([]),
      stop: { asked: stop.signal, forced: new AbortController().signal },
      killSelf: () => Promise.reject(new Error('no process to end')),
      parent: undefined,
    };
    const program = buildProgram(host, (exitCode) => {
      code = exitCode;
    });
    const folders = [
      '--models-dir',
      MODELS,
      '--data-dir',
      join(folder, 'data'),
      '--cache-dir',
      join(folder, 'cache'),
    ];
    await program.parseAsync([...args, ...folders], { from: 'user' });
    return code;
  }

  it('measure sessions and the whole path, and store what serving uses', async () => {
    expect(await run('tune', 'identity', '--seconds', '10')).to.equal(0);
    const text = said.join('\n');
    expect(text)
      .to.include('Sessions alone, all cores:')
      .and.to.include('requests/s')
      .and.to.include('Chosen: ');
    const names = (await readdir(join(folder, 'data/tuning'))).sort();
    expect(names).to.have.length(2);
    const report = JSON.parse(await readFile(join(folder, 'data/tuning', names[1] ?? ''), 'utf8'));
    const stored = JSON.parse(await readFile(join(folder, 'data/tuning', names[0] ?? ''), 'utf8'));
    expect(stored.session).to.deep.equal(report.choice);
    for (const { rounds, failed } of report.path) {
      expect(failed).to.equal(0);
      expect(rounds.every((each: number) => each > 0)).to.equal(true);
    }
    // The curve of what was measured is kept: the next start has it.
    expect(await readdir(join(folder, 'data/curves'))).not.to.deep.equal([]);

    const out = join(folder, 'curve.svg');
    said = [];
    expect(await run('profile', 'identity', '--out', out)).to.equal(0);
    expect(said.join('\n'))
      .to.match(/Error of the fit: mean [\d.]+%, largest [\d.]+%/)
      .and.to.include('Identity');
    expect(await readFile(out, 'utf8')).to.match(/^<svg .*<\/svg>\n$/s);
  });

  it('store nothing when stopped', async () => {
    const tuned = run('tune', 'identity', '--seconds', '10');
    stop.abort();
    expect(await tuned).to.equal(1);
    expect(await readdir(join(folder, 'data')).catch(() => [])).not.to.include('tuning');
  });
});
