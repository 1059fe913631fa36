import { expect } from 'chai';
import { StartupError } from '../errors/millrace-error.js';
import { defaultText, loadSettings, type SettingFlags, settingsToEnv } from './load.js';
import { SETTINGS } from './settings.js';

describe('settings', () => {
  it('come from flags before the environment before defaults', () => {
    expect(loadSettings({}).port).to.equal(8080);
    expect(loadSettings({ PORT: '9000' }).port).to.equal(9000);
    expect(loadSettings({ PORT: '9000', MILLRACE_PORT: '9001' }).port).to.equal(9001);
    expect(loadSettings({ PORT: '9000' }, { port: '9002' }).port).to.equal(9002);
  });

  it('take origins as browsers write them, or all', () => {
    const { corsOrigins } = loadSettings({ MILLRACE_CORS_ORIGINS: 'https://a.com, http://localhost:5173' });
    expect(corsOrigins).to.deep.equal(['https://a.com', 'http://localhost:5173']);
    expect(loadSettings({}, { corsOrigins: '*' }).corsOrigins).to.deep.equal(['*']);
  });

  it('take an empty variable as absent', () => {
    expect(loadSettings({ MILLRACE_PORT: '', MILLRACE_DASHBOARD_ADMIN: '' }).port).to.equal(8080);
  });

  it('that are not valid are refused in plain words, by the flag or the variable that gave them', () => {
    const refusal = (env: NodeJS.ProcessEnv, flags: SettingFlags = {}): string => {
      try {
        loadSettings(env, flags);
      } catch (error) {
        if (error instanceof StartupError) return error.message;
      }
      throw new Error('it is not refused');
    };
    const wholePort = 'must be a whole number from 0 to 65535.';
    expect(refusal({}, { port: 'x' })).to.equal(`--port is "x", but ${wholePort}`);
    expect(refusal({ MILLRACE_PORT: '1.5' })).to.equal(`MILLRACE_PORT is "1.5", but ${wholePort}`);
    expect(refusal({ PORT: '70000' })).to.equal(`PORT is "70000", but ${wholePort}`);
    expect(refusal({ MILLRACE_WAIT_MS: 'soon' })).to.match(/but must be a whole number of at least 1\.$/);
    expect(refusal({ MILLRACE_DEVICE: 'tpu' })).to.match(/but must be cpu or cuda\.$/);
    expect(refusal({}, { logLevel: 'loud' })).to.match(/but must be trace, .*, error, fatal or silent\.$/);
    for (const origins of ['app.example.com', 'https://a.com/', 'https://A.com', 'null', '*,https://a.com']) {
      expect(refusal({}, { corsOrigins: origins })).to.match(
        /but must be origins such as .*, or \* alone\.$/,
      );
    }
    expect(refusal({}, { socketMode: '0o66' })).to.match(/but must be three octal digits such as 660\.$/);
    expect(refusal({}, { allowPublic: 'maybe' })).to.match(/but must be true or false\.$/);
    expect(refusal({}, { redisMaxMemory: 'plenty' })).to.match(/but must be a size such as 512mb\.$/);
  });

  it('that are API keys must have their form, and are not shown', () => {
    const entry = `alice=${'0a'.repeat(32)}`;
    expect(loadSettings({}, { apiKeys: entry }).apiKeys).to.deep.equal([entry]);
    expect(() => loadSettings({ MILLRACE_API_KEYS: `${entry},mr_key` })).to.throw(
      StartupError,
      /^MILLRACE_API_KEYS must be NAME=SHA256HEX .*; entry 2 is not\.$/,
    );
    expect(() => loadSettings({}, { apiKeys: `${entry},${entry}` })).to.throw(
      StartupError,
      /^--api-keys must not have one name twice; entries 1 and 2 have the same\.$/,
    );
  });

  it('never show a secret in a refusal', () => {
    try {
      loadSettings({}, { apiKeys: 12345 });
      expect.fail('a number is not a list of keys');
    } catch (error) {
      expect((error as Error).message).not.to.contain('12345');
    }
  });

  it('reach a child process unchanged through its environment', () => {
    const settings = loadSettings(
      {},
      { models: 'a,b', dashboardAdmin: 'true', apiKeys: `k=${'00'.repeat(32)}`, port: 0 },
    );
    expect(loadSettings(settingsToEnv(settings))).to.deep.equal(settings);
  });

  it('are frozen', () => {
    expect(Object.isFrozen(loadSettings({}))).to.equal(true);
  });

  it('each have a variable and a flag of their own, a meaning, and a default that can be shown', () => {
    const specs = Object.values(SETTINGS);
    expect(new Set(specs.map((spec) => spec.env)).size).to.equal(specs.length);
    expect(new Set(specs.map((spec) => spec.flag)).size).to.equal(specs.length);
    for (const spec of specs) {
      expect(spec.help).to.match(/\.$/);
      expect(() => defaultText(spec)).not.to.throw();
    }
  });
});
