import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { socketFolder } from '../redis/socket-folder.js';
import { type Lock, lockDataFolder } from './lock.js';

describe('lockDataFolder', () => {
  let dataDir: string;
  const locks: Lock[] = [];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'millrace-lock-'));
  });

  afterEach(async () => {
    for (const lock of locks.splice(0)) await lock.release();
    await rm(dataDir, { recursive: true });
  });

  async function take(pid: number): Promise<Lock> {
    const lock = await lockDataFolder(dataDir, pid);
    locks.push(lock);
    return lock;
  }

  const refusal = (pid: number) => take(pid).then(String, (error: Error) => error.message);

  it('is had by one at a time, and names who has it', async () => {
    const lock = await take(11);
    expect(await refusal(22)).to.equal(`The data folder ${dataDir} is in use by process 11.`);
    await lock.release();
    await take(22);
  });

  it('is waited for while its owner is stopping', async () => {
    const lock = await take(11);
    lock.stopping();
    const said: string[] = [];
    const next = lockDataFolder(dataDir, 22, (line) => {
      said.push(line);
      void lock.release();
    });
    locks.push(await next);
    expect(said).to.deep.equal(['Waiting for process 11, which is stopping...']);
  });

  it('is taken over from an owner that died without releasing it', async () => {
    const path = join(await socketFolder(dataDir), 'lock.sock');
    await leaveDeadSocket(path);
    await take(33);
    expect(await refusal(44)).to.contain('process 33');
  });

  it('has one new owner when several find the same dead one', async () => {
    const path = join(await socketFolder(dataDir), 'lock.sock');
    await leaveDeadSocket(path);
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5].map((pid) => take(pid)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(1);
  });

  it('says so when the folder cannot be made', async () => {
    const base = dataDir;
    dataDir = join(base, 'file');
    await writeFile(dataDir, '');
    expect(await refusal(77)).to.equal(`The data folder ${dataDir} cannot be written (EEXIST).`);
    dataDir = base;
  });

  it('works in a folder whose path is too long for a socket', async () => {
    const base = dataDir;
    dataDir = join(base, 'a-rather-long-name-'.repeat(8));
    await take(55);
    expect(await refusal(66)).to.contain('process 55');
    dataDir = base;
  });
});

/** A socket file that nobody listens on, as `kill -9` leaves it. */
async function leaveDeadSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  // Closing removes the file under the name it was made with.
  await rename(path, `${path}.dead`);
  await new Promise((resolve) => server.close(resolve));
  await rename(`${path}.dead`, path);
}
