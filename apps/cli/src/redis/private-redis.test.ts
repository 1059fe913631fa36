import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, untilReady } from '@millrace/shared';
import { expect } from 'chai';
import { type PrivateRedis, startPrivateRedis } from './private-redis.js';

type Redis = ReturnType<typeof connectRedis>;

describe('startPrivateRedis', () => {
  let dataDir: string;
  const started: PrivateRedis[] = [];
  const clients: Redis[] = [];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'millrace-redis-'));
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    for (const redis of started.splice(0)) await redis.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function start(
    options: Partial<Parameters<typeof startPrivateRedis>[0]> = {},
  ): Promise<PrivateRedis> {
    const redis = await startPrivateRedis({ dataDir, ...options });
    started.push(redis);
    return redis;
  }

  async function client(url: string): Promise<Redis> {
    const redis = connectRedis(url, 'worker', 'test');
    clients.push(redis);
    await untilReady(redis);
    return redis;
  }

  it('keeps its data and address over an orderly stop', async () => {
    const redis = await start();
    const first = await client(redis.url);
    await first.set('kept', 'yes');
    await redis.stop();
    await redis.start();
    expect(await first.get('kept')).to.equal('yes');
  });

  it('keeps what reached its file over kill -9, for a new owner of the folder too', async () => {
    const redis = await start({ appendfsync: 'always' });
    await (await client(redis.url)).set('kept', 'yes');
    await redis.kill9();
    const again = await start();
    expect(again.url).to.equal(redis.url);
    expect(await (await client(again.url)).get('kept')).to.equal('yes');
  });

  it('is set up never to evict, to keep an append-only file, and to take no TCP connections', async () => {
    const redis = await start({ maxmemory: '64mb' });
    const commands = await client(redis.url);
    const config = async (name: string) => (await commands.config('GET', name)) as string[];
    expect(await config('maxmemory')).to.deep.equal(['maxmemory', String(64 * 1024 * 1024)]);
    expect(await config('maxmemory-policy')).to.deep.equal(['maxmemory-policy', 'noeviction']);
    expect(await config('appendonly')).to.deep.equal(['appendonly', 'yes']);
    expect(await config('port')).to.deep.equal(['port', '0']);
    expect((await config('client-output-buffer-limit'))[1]).to.contain('pubsub 268435456 67108864 60');
  });

  it('asks for a password that only its owner can read and no process list shows', async () => {
    const redis = await start();
    const password = new URL(redis.url).searchParams.get('password') ?? '';
    expect(password).to.have.length.of.at.least(20);
    for (const name of ['redis.conf', 'password']) {
      const file = join(dataDir, 'redis', name);
      expect((await stat(file)).mode & 0o777, name).to.equal(0o600);
      expect(await readFile(file, 'utf8'), name).to.contain(password);
    }
    const stranger = connectRedis(redis.url.replace(/\?.*/, ''), 'worker', 'stranger');
    clients.push(stranger);
    const refusal = await stranger.get('x').catch((error: Error) => error.message);
    expect(refusal).to.contain('NOAUTH');
  });

  it('is started again when it dies unasked, and says so', async () => {
    const said: string[] = [];
    const redis = await start({ keepAlive: true, say: (line) => said.push(line) });
    const commands = await client(redis.url);
    const { pid } = redis;
    process.kill(pid, 'SIGKILL');
    // It may answer clients a moment before it is known to be up.
    while (redis.pid === pid) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await commands.ping()).to.equal('PONG');
    expect(said).to.deep.equal([`redis (${pid}) ended with signal SIGKILL; starting it again in 0.5 s`]);
  });

  it('ends a Redis that outlived its owner before it starts on the same file', async () => {
    const old = await start();
    await (await client(old.url)).set('kept', 'yes');
    const redis = await start();
    expect(redis.pid).not.to.equal(old.pid);
    expect(await (await client(redis.url)).get('kept')).to.equal('yes');
  });

  it('works in a folder whose path is too long for a socket', async () => {
    dataDir = join(dataDir, 'a-rather-long-name-'.repeat(8));
    const redis = await start();
    expect(await (await client(redis.url)).ping()).to.equal('PONG');
  });

  it('says what its log says when it cannot start', async () => {
    const failure = await start({ maxmemory: 'plenty' }).catch((error: Error) => error);
    expect(failure).to.be.instanceOf(Error).with.property('name', 'StartupError');
    expect((failure as Error).message).to.match(/ended with exit code 1; its log ends with: .*maxmemory/);
  });
});
