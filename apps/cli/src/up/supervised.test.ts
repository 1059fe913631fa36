import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import type { FromChild, Ready } from '../messages.js';
import type { Child, ChildSpec } from './child-process.js';
import { Supervised } from './supervised.js';

const SPEC: ChildSpec = { name: 'worker 1', mainFile: 'main.js', args: ['worker'], env: {} };
const READY: Ready = { type: 'ready', url: 'http://127.0.0.1:1' };

/** A child process that does what the test says. */
class FakeChild implements Child {
  readonly signals: string[] = [];
  readonly ended: Promise<string>;
  end: (how: string) => void = () => undefined;
  tell: (message: FromChild) => void = () => undefined;

  constructor(readonly pid: number) {
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  onMessage(listener: (message: FromChild) => void): void {
    this.tell = listener;
  }

  signal(name: NodeJS.Signals): void {
    this.signals.push(name);
    this.end(name);
  }
}

describe('Supervised', () => {
  let children: FakeChild[];
  let said: string[];
  let supervised: Supervised;
  let started: (child: FakeChild) => void;

  beforeEach(() => {
    children = [];
    said = [];
    started = () => undefined;
    supervised = new Supervised(
      () => SPEC,
      (line) => said.push(line),
      () => {
        const child = new FakeChild(children.length + 1);
        children.push(child);
        // After the supervisor listens to it.
        setImmediate(() => started(child));
        return child;
      },
    );
  });

  afterEach(() => supervised.stop(0));

  /** Waits for the n-th process, counted from 1. */
  async function child(n: number): Promise<FakeChild> {
    for (;;) {
      const found = children[n - 1];
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  it('resolves when the process serves', async () => {
    started = ({ tell }) => tell(READY);
    expect(await supervised.start()).to.deep.equal(READY);
  });

  it('starts it again when it dies, and says so in one line', async () => {
    started = ({ tell }) => tell(READY);
    await supervised.start();
    (await child(1)).end('SIGKILL');
    await child(2);
    expect(said).to.deep.equal(['worker 1 (1) ended with SIGKILL; starting it again in 0.5 s']);
  });

  it('says where it is once a new process of it is at another address', async () => {
    const address = (pid: number) => `http://127.0.0.1:${pid}`;
    started = ({ pid, tell }) => tell({ type: 'ready', url: address(pid) });
    await supervised.start();
    (await child(1)).end('SIGKILL');
    await child(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(said[1]).to.equal('worker 1 is now at http://127.0.0.1:2');
  });

  it('takes a refusal at the first start as final', async () => {
    started = ({ tell, end }) => {
      tell({ type: 'refused', sentence: 'No.', nextStep: 'Do otherwise.' });
      end('exit code 1');
    };
    const error = await supervised.start().catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(StartupError).and.include({ message: 'No.', nextStep: 'Do otherwise.' });
    expect(children).to.have.lengthOf(1);
  });

  it('goes on after a refusal once it has served: Redis may be away for a moment', async () => {
    started = ({ pid, tell, end }) => {
      if (pid !== 2) return tell(READY);
      tell({ type: 'refused', sentence: 'Redis does not answer.', nextStep: '' });
      end('exit code 1');
    };
    await supervised.start();
    (await child(1)).end('SIGKILL');
    await child(3);
    expect(said[1]).to.equal(
      'worker 1 (2) ended with exit code 1: Redis does not answer.; starting it again in 1 s',
    );
  });

  it('gives up on one that keeps dying before it serves', async () => {
    started = ({ end }) => end('SIGSEGV');
    const error = await supervised.start().catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(StartupError);
    expect((error as Error).message).to.contain('SIGSEGV 3 times');
  });

  it('says nothing of an end that comes once everything is to end', async () => {
    void supervised.start();
    const first = await child(1);
    supervised.letEnd();
    first.end('SIGINT');
    await supervised.stop(1000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(said).to.deep.equal([]);
    expect(children).to.have.lengthOf(1);
  });

  it('starts nothing again after it was told to stop', async () => {
    started = ({ tell }) => tell(READY);
    await supervised.start();
    await supervised.stop(1000);
    expect((await child(1)).signals).to.deep.equal(['SIGTERM']);
    expect(said).to.deep.equal([]);
    expect(children).to.have.lengthOf(1);
  });
});
