import { expect } from 'chai';
import { StartupError } from '../errors/millrace-error.js';
import { defaultText, loadSettings, settingsToEnv } from './load.js';
import { SETTINGS } from './settings.js';

describe('settings', () => {
  it('come from flags before the environment before defaults', () => {
    expect(loadSettings({}).port).to.equal(8080);
    expect(loadSettings({ PORT: '9000' }).port).to.equal(9000);
    expect(loadSettings({ PORT: '9000', MILLRACE_PORT: '9001' }).port).to.equal(9001);
    expect(loadSettings({ PORT: '9000' }, { port: '9002' }).port).to.equal(9002);
  });

  it('take an empty variable as absent', () => {
    expect(loadSettings({ MILLRACE_PORT: '', MILLRACE_DASHBOARD_ADMIN: '' }).port).to.equal(8080);
  });

  it('that are not valid are refused with variable, flag and meaning', () => {
    const load = () => loadSettings({ MILLRACE_WAIT_MS: 'soon' });
    expect(load).to.throw(StartupError, /MILLRACE_WAIT_MS is "soon"/);
    expect(() => loadSettings({ MILLRACE_PORT: '70000' })).to.throw(StartupError, /MILLRACE_PORT/);
    expect(() => loadSettings({ MILLRACE_DEVICE: 'tpu' })).to.throw(StartupError, /MILLRACE_DEVICE/);
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
    const settings = loadSettings({}, { models: 'a,b', dashboardAdmin: 'true', apiKeys: 'k=00', port: 0 });
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
