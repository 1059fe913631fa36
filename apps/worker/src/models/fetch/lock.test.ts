import { spawnSync } from 'node:child_process';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pid as ownPid } from 'node:process';
import { expect } from 'chai';
import { withLock } from './lock.js';

describe('the lock of a model folder', () => {
  const never = new AbortController().signal;
  const nothing = () => undefined;
  let dir: string;
  let path: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'millrace-lock-'));
    path = join(dir, 'work', 'lock');
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  it('lets one in at a time, says that it waits, and is gone afterwards', async () => {
    const order: string[] = [];
    let second: Promise<unknown> | undefined;
    await withLock(path, never, nothing, async () => {
      await new Promise<void>((waiting) => {
        second = withLock(path, never, waiting, async () => order.push('second'));
      });
      order.push('first');
    });
    await second;
    expect(order).to.deep.equal(['first', 'second']);
    expect(await access(path).catch(({ code }: NodeJS.ErrnoException) => code)).to.equal('ENOENT');
  });

  it('is given back by work that fails', async () => {
    const failure = new Error('no');
    const failing = withLock(path, never, nothing, () => Promise.reject(failure));
    expect(await failing.catch((error: unknown) => error)).to.equal(failure);
    expect(await withLock(path, never, nothing, async () => 'in')).to.equal('in');
  });

  it('of a process of this host that is gone is taken at once', async () => {
    const { pid } = spawnSync('true');
    for (const gone of [pid, ownPid]) {
      await withLock(path, never, nothing, async () => undefined);
      await writeFile(path, JSON.stringify({ id: 'x', host: hostname(), pid: gone }));
      const onWait = () => expect.fail('it waited');
      expect(await withLock(path, never, onWait, async () => 'in')).to.equal('in');
    }
  });

  it('of another host is waited for while it is touched', async () => {
    await withLock(path, never, nothing, async () => undefined);
    await writeFile(path, JSON.stringify({ id: 'x', host: `not-${hostname()}`, pid: 1 }));
    const onWait = () => void rm(path);
    expect(await withLock(path, never, onWait, async () => 'in')).to.equal('in');
  });

  it('is not waited for when the signal comes', async () => {
    const stop = new AbortController();
    await withLock(path, never, nothing, async () => {
      const waiting = withLock(
        path,
        stop.signal,
        () => stop.abort(),
        async () => 'in',
      );
      expect(await waiting.catch((error: Error) => error.name)).to.equal('AbortError');
    });
  });
});
