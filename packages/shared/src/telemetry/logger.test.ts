import { expect } from 'chai';
import { withoutCommand } from './logger.js';

describe('the logger', () => {
  it('writes of a failed Redis command its name, never what was sent with it', () => {
    const error = Object.assign(new Error('OOM command not allowed'), {
      command: { name: 'evalsha', args: ['sha', 'a client wrote this'] },
    });
    const written = withoutCommand(Object.assign(new Error('refused', { cause: error }), {}));
    expect(withoutCommand(error)).to.include({ message: 'OOM command not allowed', command: 'evalsha' });
    expect(JSON.stringify([withoutCommand(error), written])).not.to.contain('a client wrote this');
  });
});
