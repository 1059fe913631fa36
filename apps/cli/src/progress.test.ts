import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { Host, Parent } from './host.js';
import type { FromChild } from './messages.js';
import { openProgress } from './progress.js';
import { fitted } from './steps.js';

function hostWith(say: (line: string) => void, parent?: Parent): Host {
  const never = new AbortController().signal;
  return {
    env: {},
    mainFile: '',
    version: '',
    pid: 1,
    isTerminal: false,
    say,
    stdin: () => Readable.from([]),
    stop: { asked: never, forced: never },
    killSelf: () => Promise.reject(new Error('no process to end')),
    parent,
  };
}

describe('progress', () => {
  it('is a line a step where there is no terminal, and nothing for what is done at once', () => {
    const said: string[] = [];
    const view = openProgress(hostWith((line) => said.push(line)));
    view.show({ model: 'm', step: 'ready', fraction: 1 });
    view.show({ model: 'm', step: 'fetch', fraction: 0.123, detail: 'weights' });
    view.show({ model: 'm', step: 'fetch', fraction: 0.124, detail: 'weights' });
    view.show({ model: 'm', step: 'build', fraction: 0 });
    view.close();
    expect(said).to.deep.equal(['m: fetching 12% (weights)', 'm: building']);
  });

  it('has texts of one width, longer ones cut', () => {
    expect(fitted('m: building', 14)).to.equal('m: building   ');
    expect(fitted('a-rather-long-name: building', 14)).to.equal('a-rather-lo...');
  });

  it('goes to the parent process where there is one', () => {
    const told: FromChild[] = [];
    const view = openProgress(
      hostWith(
        () => {
          throw new Error('a child has nothing to say');
        },
        { tell: (message) => told.push(message) },
      ),
    );
    view.show({ model: 'm', step: 'fetch', fraction: 0.5 });
    expect(told).to.deep.equal([{ type: 'progress', model: 'm', step: 'fetch', fraction: 0.5 }]);
  });
});
