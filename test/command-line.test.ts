import { expect } from 'chai';
import { MillraceRunner } from './support/millrace-process.js';

describe('millrace', () => {
  const runner = new MillraceRunner();

  after(() => runner.clean());

  it('finds its own models from any folder', async () => {
    const millrace = runner.run({ args: ['models', 'list'], cwd: await runner.folder() });
    expect(await millrace.ended).to.equal(0);
    expect(millrace.output()).to.match(/^identity /m);
  });

  it('helps, says its version, and helps on after a slip', async () => {
    const outputOf = async (...args: string[]) => {
      const millrace = runner.run({ args });
      const exitCode = await millrace.ended;
      return `${exitCode} ${millrace.output()}`;
    };
    expect(await outputOf('help')).to.match(/^0 Usage: millrace/);
    expect(await outputOf('help', 'worker')).to.match(/^0 Usage: millrace worker/);
    for (const version of ['version', '-v', '--version']) {
      expect(await outputOf(version)).to.match(/^0 \d+\.\d+\.\d+\n$/);
    }
    expect(await outputOf('wroker')).to.match(/^1 .*unknown command 'wroker'\n.*worker\?\)\n.*--help/);
  });

  it('knows a flag that npm kept to itself', async () => {
    const env = { npm_lifecycle_event: 'start', npm_config_port: 'true' };
    const millrace = runner.run({ args: ['9000'], env });
    expect(await millrace.ended).to.equal(1);
    expect(millrace.output()).to.contain('npm start -- --port 9000');
  });
});
