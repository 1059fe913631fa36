import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { connectRedis } from './connect.js';

const KEYS = 3000;

describe('a connection to a Redis that reads its files', () => {
  let folder: string;
  let server: ChildProcess | undefined;
  const start = (...options: string[]): void => {
    const socket = join(folder, 'redis.sock');
    const args = ['--port', '0', '--unixsocket', socket, '--dir', folder, '--save', '', ...options];
    server = spawn('redis-server', args, { stdio: 'ignore' });
  };
  const stop = async (): Promise<void> => {
    if (!server) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
    server = undefined;
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-loading-'));
  });
  after(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('is there soon after that is done, however long Redis thought it would take', async () => {
    const url = `unix://${join(folder, 'redis.sock')}`;
    start();
    const writer = connectRedis(url, 'worker', 'test');
    for (let i = 0; i < KEYS; i++) void writer.set(`key-${i}`, 'x'.repeat(1000));
    await writer.save();
    writer.disconnect();
    await stop();
    // Half a minute, as it looks at first; its clients are looked at in between.
    start('--key-load-delay', '10000', '--loading-process-events-interval-bytes', '1024');
    const redis = connectRedis(url, 'worker', 'test');
    const watcher = connectRedis(url, 'worker', 'test');
    watcher.options.enableReadyCheck = false;
    try {
      const answer = (): Promise<string | null> => watcher.get('key-0').catch(({ message }) => message);
      while (!(await answer())?.startsWith('LOADING')) await setTimeout(20);
      // By now the other has been told how long it may take.
      await setTimeout(500);
      await watcher.config('SET', 'key-load-delay', '0');
      while (!(await answer())?.startsWith('x')) await setTimeout(20);
      const since = performance.now();
      await redis.get('key-0');
      expect(performance.now() - since).to.be.below(700);
    } finally {
      redis.disconnect();
      watcher.disconnect();
    }
  });
});
