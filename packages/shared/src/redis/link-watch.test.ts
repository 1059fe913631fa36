import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { connectRedis, untilReady } from './connect.js';
import { LinkWatch } from './link-watch.js';

describe('LinkWatch', function () {
  this.timeout(30_000);
  let folder: string;
  let redisServer: ChildProcess;
  let proxy: Server;
  const sockets = new Set<Socket>();
  /** Connections of the time when it hangs are taken, and never answered. */
  let hangs = false;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-hung-'));
    const path = join(folder, 'redis.sock');
    const args = ['--port', '0', '--unixsocket', path, '--dir', folder, '--save', ''];
    redisServer = spawn('redis-server', args, { stdio: 'ignore' });
    proxy = createServer((client) => {
      sockets.add(client);
      client.on('error', () => undefined);
      if (hangs) return;
      const redis = connect({ path });
      sockets.add(redis);
      redis.on('error', () => client.destroy());
      redis.pipe(client).pipe(redis);
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
    const ended = once(redisServer, 'exit');
    redisServer.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  });

  it('leaves a Redis that takes connections and never answers, for the one that is at its address by then', async () => {
    const { port } = proxy.address() as AddressInfo;
    const redis = connectRedis(`redis://127.0.0.1:${port}`, 'producer', 'test');
    const watch = new LinkWatch(redis);
    try {
      await untilReady(redis);
      watch.start();
      await redis.set('key', 'value');
      hangs = true;
      for (const socket of sockets) socket.unpipe();
      const asked = redis.get('key');
      await new Promise((resolve) => redis.once('connect', () => resolve(undefined)));
      expect(watch.answering).to.equal(false);
      // That connection stays as it is.
      hangs = false;
      expect(await asked).to.equal('value');
      expect(watch.answering).to.equal(true);
    } finally {
      watch.stop();
      redis.disconnect();
    }
  });
});
