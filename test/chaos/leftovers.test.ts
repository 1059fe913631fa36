import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BULL_PREFIX,
  batchKey,
  connectRedis,
  fileRecordKey,
  jobRecordKey,
  OPEN_BATCHES_KEY,
  payloadKey,
  replyKey,
} from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { Cluster } from '../support/cluster.js';
import { lookInRedis } from './leftovers.js';
import { leftInFiles } from './leftovers-files.js';

const QUEUE = '{identity@1}';
const LIVES = {
  longestWaitMs: 10_000,
  idempotencyKeepMs: 30_000,
  keptMs: 60_000,
  fileKeepMs: 3_600_000,
  lineMs: 600_000,
  mostOrphans: 0,
};

describe('the search for what a run left in Redis', () => {
  let cluster: Cluster;
  let redis: Redis;

  before(async () => {
    cluster = await Cluster.start({ models: [], gateways: 0, workers: 0 });
    redis = connectRedis(cluster.redis.url, 'subscriber', 'leftovers');
  });
  afterEach(() => redis.flushall());
  after(async () => {
    redis.disconnect();
    await cluster.stop();
  });

  const left = () => lookInRedis(redis, LIVES);

  it('takes what expires in time, what is kept of settled jobs and the registry', async () => {
    await redis.set(replyKey(QUEUE, 'a', 0), 'x', 'PX', 19_000);
    await redis.set(payloadKey(QUEUE, 'a', 0), 'x', 'PX', 69_000);
    await redis.zadd(`${BULL_PREFIX}:${QUEUE}:completed`, 1, 'a.0');
    await redis.hset(`${BULL_PREFIX}:${QUEUE}:a.0`, 'data', '{}');
    await redis.hset('{mr-registry}:announcements', 'w', '{}');
    expect(await left()).to.deep.equal([]);
  });

  it('finds keys that never expire or too late, and unknown ones', async () => {
    await redis.set(replyKey(QUEUE, 'a', 0), 'x');
    await redis.set(replyKey(QUEUE, 'b', 0), 'x', 'PX', 40_000);
    await redis.set('mr-idempotency:{identity@1}:k', 'x', 'PX', 60_000);
    await redis.set('stray', 'x', 'PX', 1000);
    expect(await left()).to.have.length(4);
  });

  it('takes what is kept of a durable request until its time is over, and no longer', async () => {
    const id = randomUUID();
    await redis.set(replyKey(QUEUE, id, 0), 'x', 'PX', 60_000);
    expect(await left()).to.have.length(1);
    await redis.set(jobRecordKey(id), JSON.stringify({ keepUntil: Date.now() + 55_000 }), 'PX', 3_600_000);
    expect(await left()).to.deep.equal([]);
    await redis.set(payloadKey(QUEUE, id, 0), 'x', 'PX', 125_000);
    expect(await left()).to.have.length(1);
  });

  it('takes some of what lines had under way whose gateway died', async () => {
    await redis.set(replyKey(QUEUE, 'a', 0), 'x', 'PX', 600_000);
    await redis.set(replyKey(QUEUE, 'b', 0), 'x', 'PX', 600_000);
    expect(await lookInRedis(redis, { ...LIVES, mostOrphans: 2 })).to.deep.equal([]);
    expect(await lookInRedis(redis, { ...LIVES, mostOrphans: 1 })).to.have.length(1);
    await redis.set(replyKey(QUEUE, 'b', 0), 'x', 'PX', 700_000);
    expect(await lookInRedis(redis, { ...LIVES, mostOrphans: 2 })).to.have.length(1);
  });

  it('finds batches that have not ended', async () => {
    await redis.hset(batchKey('batch_a'), 'record', '{}');
    await redis.pexpire(batchKey('batch_a'), 86_400_000);
    expect(await left()).to.deep.equal([]);
    await redis.zadd(OPEN_BATCHES_KEY, 1, 'batch_a');
    expect(await left()).to.deep.equal(['the batches batch_a, which have not ended']);
  });

  it('finds jobs that wait or run, their locks, and jobs in no state', async () => {
    await redis.zadd(`${BULL_PREFIX}:${QUEUE}:prioritized`, 1, 'a.0');
    await redis.lpush(`${BULL_PREFIX}:${QUEUE}:active`, 'b.0');
    await redis.set(`${BULL_PREFIX}:${QUEUE}:b.0:lock`, 'token', 'PX', 3000);
    await redis.hset(`${BULL_PREFIX}:${QUEUE}:c.0`, 'data', '{}');
    expect(await left()).to.have.length(4);
  });

  it('finds files whose objects are gone; what no file names is swept', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-leftovers-'));
    const id = `file-${'a'.repeat(32)}`;
    const other = `file-${'b'.repeat(32)}`;
    const segment = (name: string) => ({ key: `files/${id}/${name}`, bytes: 1 });
    for (const [file, name] of [
      [id, '000000'],
      [id, '000000-1'],
      [other, '.000000.x.tmp'],
    ] as const) {
      await mkdir(join(folder, 'files', file), { recursive: true });
      await writeFile(join(folder, 'files', file, name), 'x');
    }
    const record = {
      v: 1,
      id,
      owner: 'anonymous',
      expiresAt: Date.now() + 60_000,
      segments: [segment('000000')],
    };
    await redis.set(fileRecordKey(id), JSON.stringify(record));
    expect(await leftInFiles(redis, folder)).to.deep.equal([]);
    const lacking = { ...record, segments: [segment('000000'), segment('000001')] };
    await redis.set(fileRecordKey(id), JSON.stringify(lacking));
    expect(await leftInFiles(redis, folder)).to.deep.equal([
      `the file ${id}, whose object files/${id}/000001 is gone`,
    ]);
    await rm(folder, { recursive: true });
  });
});
