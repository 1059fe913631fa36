import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { refuseKeptFlags } from './npm-flags.js';

describe('flags that npm kept to itself', () => {
  const npm = { npm_lifecycle_event: 'start' };

  function hint(env: NodeJS.ProcessEnv, args: string[]): string | undefined {
    try {
      refuseKeptFlags(env, args);
      return undefined;
    } catch (error) {
      return error instanceof StartupError ? error.nextStep : String(error);
    }
  }

  it('are answered with the line that works', () => {
    expect(hint({ ...npm, npm_config_port: 'true' }, ['9000'])).to.equal('Write: npm start -- --port 9000');
    expect(hint({ ...npm, npm_config_port: '9000' }, ['up'])).to.equal('Write: npm start -- --port 9000');
    expect(hint({ ...npm, npm_config_allow_public: 'true' }, ['up'])).to.equal(
      'Write: npm start -- --allow-public',
    );
    expect(hint({ ...npm, npm_config_port: 'true', npm_config_workers: 'true' }, ['9000', '2'])).to.equal(
      'Write: npm start -- --port VALUE --workers VALUE',
    );
  });

  it('are none where npm has passed everything on, or did not start this', () => {
    expect(hint(npm, ['up', '--port', '9000'])).to.equal(undefined);
    expect(hint({ npm_config_port: '9000' }, ['up'])).to.equal(undefined);
  });
});
