import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { between, type Fault, fault, oneOf, pass } from './fault.js';
import type { Excuse } from './history.js';

const run = promisify(execFile);

const OUTAGE: Excuse = { codes: ['queue_unavailable', 'overloaded'], outage: true, recoveryMs: 2000 };

/** Nor can workers renew their announcements then: a gateway that starts meanwhile knows of none. */
const NO_WRITES: Excuse = { ...OUTAGE, codes: [...OUTAGE.codes, 'queue_full', 'no_worker'] };

/** Redis gone, hanging, full, or not taking writes. */
export const REDIS_FAULTS: readonly Fault[] = [
  fault('redis-kill', 'redis', OUTAGE, async ({ cluster, random }, told) => {
    told('redis');
    await cluster.redis.kill9();
    await pass(random, 0, 2500);
    await cluster.redis.start();
  }),

  fault('redis-sleep', 'redis', OUTAGE, async ({ redis, random }, told) => {
    told('redis');
    await redis.call('DEBUG', 'SLEEP', between(random, 0.5, 4).toFixed(2));
  }),

  fault('redis-client-kill', 'redis', { ...OUTAGE, recoveryMs: 1000 }, async ({ redis, random }, told) => {
    const type = oneOf(random, ['normal', 'pubsub']);
    told(`${type} clients`);
    // 'SKIPME' spares this connection alone.
    const killed = await redis.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    if (!(Number(killed) > 0)) throw new Error('no client was connected');
  }),

  fault('redis-full', 'redis', NO_WRITES, async (scene, told) => {
    const { redis, random } = scene;
    told('maxmemory');
    const [, before = ''] = (await redis.config('GET', 'maxmemory')) as string[];
    await redis.config('SET', 'maxmemory', '1mb');
    try {
      await pass(random, 1000, 4000);
    } finally {
      await redis.config('SET', 'maxmemory', before);
    }
  }),

  // As after a failover: a replica without its master refuses every write and answers every read.
  fault('redis-demoted', 'redis', NO_WRITES, async ({ redis, random }, told) => {
    told('redis');
    await redis.call('REPLICAOF', '127.0.0.1', '1');
    try {
      await pass(random, 1000, 4000);
    } finally {
      await redis.call('REPLICAOF', 'NO', 'ONE');
    }
  }),

  /**
   * The append-only file can't grow: what a full disk is to Redis, which then refuses writes until it can.
   * Made by the process's limit on the size of files, which needs no privilege where a small file system would.
   * The limit is where the file ends: a write that fits in part leaves a hole of zeros in files of Redis 7.0, after
   * which it refuses to load them. That is Redis's to mend; here its coming back is wanted.
   * Under `appendfsync always` Redis ends itself at the first write that fails; meanwhile it is as by default.
   */
  fault('redis-disk-full', 'redis', NO_WRITES, async ({ cluster, redis, random }, told) => {
    told('append-only file');
    const pid = String(cluster.redis.pid);
    // A rewrite would go on in a new file, with room up to the limit.
    const percentage = await setting(redis, 'auto-aof-rewrite-percentage');
    await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
    const fsync = await setting(redis, 'appendfsync');
    await redis.config('SET', 'appendfsync', 'everysec');
    try {
      while (await isRewriting(redis)) await pass(random, 50, 50);
      const { size } = await stat(await appendOnlyFile(redis));
      await run('prlimit', ['--pid', pid, `--fsize=${size}:unlimited`]);
      await pass(random, 1500, 4000);
      const info = await redis.info('persistence');
      if (!info.includes('aof_last_write_status:err')) throw new Error('Redis wrote all the same');
    } finally {
      await run('prlimit', ['--pid', pid, '--fsize=unlimited:unlimited']);
      while (!(await redis.info('persistence')).includes('aof_last_write_status:ok'))
        await pass(random, 50, 50);
      await redis.config('SET', 'auto-aof-rewrite-percentage', percentage);
      await redis.config('SET', 'appendfsync', fsync);
    }
  }),
];

type Redis = Parameters<Fault['run']>[0]['redis'];

async function setting(redis: Redis, name: string): Promise<string> {
  return ((await redis.config('GET', name)) as string[])[1] ?? '';
}

async function isRewriting(redis: Redis): Promise<boolean> {
  return /aof_rewrite_(in_progress|scheduled):1/.test(await redis.info('persistence'));
}

/** The file that Redis appends to: of several, the one of the highest number. */
async function appendOnlyFile(redis: Redis): Promise<string> {
  const [dir, folder, name] = await Promise.all(
    ['dir', 'appenddirname', 'appendfilename'].map((each) => setting(redis, each)),
  );
  const files = await readdir(`${dir}/${folder}`);
  const newest = files
    .filter((each) => each.startsWith(`${name}.`) && each.endsWith('.incr.aof'))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .at(-1);
  if (!newest) throw new Error('Redis has no append-only file');
  return `${dir}/${folder}/${newest}`;
}
