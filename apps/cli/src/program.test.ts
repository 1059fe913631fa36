import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { SETTINGS, StartupError } from '@millrace/shared';
import { expect } from 'chai';
import type { Command } from 'commander';
import type { Host } from './host.js';
import { buildProgram } from './program.js';
import { addSettingFlags, settingsFrom } from './setting-flags.js';

describe('the command line', () => {
  let said: string[];
  let exitCode: number | undefined;

  beforeEach(() => {
    said = [];
    exitCode = undefined;
  });

  function program(env: NodeJS.ProcessEnv = {}): Command {
    const never = new AbortController().signal;
    const host: Host = {
      env,
      mainFile: 'main.js',
      version: '1.2.3',
      pid: 1,
      isTerminal: false,
      say: (line) => said.push(line),
      stdin: () => Readable.from([]),
      stop: { asked: never, forced: never },
      killSelf: () => Promise.reject(new Error('no process to end')),
      parent: undefined,
    };
    return buildProgram(host, (code) => {
      exitCode = code;
    });
  }

  function command(name: string): Command {
    const found = program().commands.find((each) => each.name() === name);
    if (!found) throw new Error(`there is no ${name}`);
    return found;
  }

  it('helps with every setting of `up`: flag, variable, default', () => {
    const help = command('up').helpInformation().replace(/\s+/g, ' ');
    for (const { flag, env } of Object.values(SETTINGS)) {
      expect(help).to.contain(`--${flag} `);
      expect(help).to.contain(env);
    }
    expect(help).to.contain('[MILLRACE_PORT or PORT; default: 8080]');
  });

  it('offers a gateway and a worker only what they read', () => {
    expect(command('gateway').helpInformation()).to.contain('--port').and.not.contain('--worker-port');
    expect(command('worker').helpInformation())
      .to.contain('--worker-port')
      .and.not.contain('--max-body-bytes');
  });

  it('offers the models commands what they read', () => {
    const models = command('models').commands;
    const flagsOf = (name: string) => {
      const help = models.find((each) => each.name() === name)?.helpInformation() ?? '';
      return [...help.matchAll(/^ +--([a-z-]+) </gm)].map(([, flag]) => flag);
    };
    expect(flagsOf('list')).to.deep.equal(['models-dir']);
    expect(flagsOf('prepare')).to.deep.equal(['models', 'models-dir', 'cache-dir']);
  });

  it('says its version when asked in either way', async () => {
    await program().parseAsync(['version'], { from: 'user' });
    expect(said).to.deep.equal(['1.2.3']);
    expect(program().helpInformation()).to.contain('-v, --version').and.to.contain('help [COMMAND]');
  });

  it('takes a flag over the environment, and a switch with or without its value', async () => {
    const up = addSettingFlags(command('up').createCommand('up'), 'up');
    up.parse(['--port', '9000', '--allow-public', '--dashboard-admin', 'false'], { from: 'user' });
    const env = { PORT: '7000', MILLRACE_WAIT_MS: '5' };
    const settings = await settingsFrom(up, { env, mainFile: 'main.js' });
    expect(settings).to.include({ port: 9000, waitMs: 5, allowPublic: true, dashboardAdmin: false });
  });

  it('lists the models', async () => {
    await program({ MILLRACE_MODELS_DIR: 'models' }).parseAsync(['models', 'list'], { from: 'user' });
    expect(exitCode).to.equal(0);
    expect(said.join('\n')).to.contain('identity  version 1  tensor');
  });

  it('prepares a model, and refuses one that is not there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
    const run = (name: string) =>
      program({ MILLRACE_CACHE_DIR: folder }).parseAsync(['models', 'prepare', name], { from: 'user' });
    try {
      await run('identity');
      expect(said.at(-1)).to.equal('identity is ready.');
      const error = await run('nobody').catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(StartupError);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('makes a key once and an entry that holds only its hash', async () => {
    await program().parseAsync(['keys', 'alice'], { from: 'user' });
    const [key = ''] = said[0]?.split(': ').slice(-1) ?? [];
    expect(key).to.have.length.of.at.least(20);
    expect(said[1]).to.match(/: alice=[0-9a-f]{64}$/);
    expect(said[1]).not.to.contain(key);
  });

  it('makes a key for the scopes that were named, and no others', async () => {
    await program().parseAsync(['keys', 'ops', '--scope', 'admin', 'infer'], { from: 'user' });
    expect(said[1]).to.match(/: ops=[0-9a-f]{64}:admin\+infer$/);
    const wrong = program().parseAsync(['keys', 'ops', '--scope', 'root'], { from: 'user' });
    const error = await wrong.catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(StartupError).with.property('message', 'There is no scope "root".');
  });
});
