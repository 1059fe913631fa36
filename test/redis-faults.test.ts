import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectRedis } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { post, until } from './support/client.js';
import { Cluster } from './support/cluster.js';

const MODEL = 'identity';
const BODY = { inputs: { fp32: [0.5, -1, 3] }, waitMs: 8000 };

/** What a client gets while something is wrong with Redis, and that it gets its answer when it is not. */
describe('a Redis that is there but of no use', () => {
  let cluster: Cluster;
  let redis: Redis;

  before(async () => {
    cluster = await Cluster.start({ models: [MODEL] });
    redis = connectRedis(cluster.redis.url, 'worker', 'test');
  });
  after(async () => {
    redis.disconnect();
    await cluster.stop();
  });

  const ask = async () => {
    const response = await post(`${cluster.url}/v1/models/${MODEL}/predict`, BODY);
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as { code?: string },
    };
  };
  const answered = async (): Promise<boolean> => {
    const { status, body } = await ask();
    if (status === 200) expect(body).to.have.deep.nested.property('outputs[0].fp32_out', [0.5, -1, 3]);
    return status === 200;
  };
  /** Whether a request is refused so; until it is, it may be answered, or refused in another way. */
  const refusal = async (code: string): Promise<boolean> => {
    const { status, body, headers } = await ask();
    if (status === 200) return false;
    expect(body.code).to.be.oneOf(['queue_full', 'queue_unavailable']);
    expect(Number(headers.get('retry-after'))).to.be.at.least(1);
    return body.code === code;
  };
  beforeEach(() => until(answered));

  it('is asked for nothing more when it is full: 429, and served again once there is room', async () => {
    await redis.setrange('filler', 40 << 20, 'x');
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
    const [, most = ''] = await redis.config('GET', 'maxmemory');
    await redis.config('SET', 'maxmemory', String(Math.round(used * 1.2)));
    try {
      await until(() => refusal('queue_full'));
    } finally {
      await redis.config('SET', 'maxmemory', most);
      await redis.del('filler');
    }
    await until(answered);
  });

  it('is refused work for with 503 when it became a read-only replica, and served again as a master', async () => {
    await redis.replicaof('127.0.0.1', 1);
    try {
      await until(() => refusal('queue_unavailable'));
    } finally {
      await redis.replicaof('NO', 'ONE');
    }
    await until(answered);
  });

  it('does not keep a worker from starting or ending in order while it takes no writes', async () => {
    const [, most = ''] = await redis.config('GET', 'maxmemory');
    await redis.config('SET', 'maxmemory', '1mb');
    try {
      const worker = await cluster.addWorker();
      worker.kill('SIGTERM');
      expect(await worker.ended).to.equal(0);
    } finally {
      await redis.config('SET', 'maxmemory', most);
    }
    await until(answered);
  });

  it('is refused new work for with 503 while it does not answer; what it was given before is answered', async () => {
    const sleeping = redis.call('DEBUG', 'SLEEP', '2.5');
    const given = ask();
    let refused = false;
    await until(() => {
      // Those that come before the silence is noticed wait with the first: not one after the other, then.
      void refusal('queue_unavailable').then((yes) => {
        refused ||= yes;
      });
      return refused;
    });
    await sleeping;
    expect((await given).status).to.equal(200);
    await until(answered);
  });

  it('holds up nobody who only asks: 503 to what was asked just before it fell silent', async () => {
    let isAwake = false;
    const sleeping = redis.call('DEBUG', 'SLEEP', '5').then(() => {
      isAwake = true;
    });
    const paths = ['/v1/jobs', '/v1/files', '/v1/batches', '/v1/jobs/00000000-0000-4000-8000-000000000000'];
    const answers = await Promise.all(paths.map((path) => fetch(cluster.url + path)));
    expect(isAwake).to.equal(false);
    for (const answer of answers) {
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('retry-after')).to.equal('1');
    }
    await sleeping;
    await until(answered);
    expect((await fetch(`${cluster.url}/v1/jobs`)).status).to.equal(200);
  });

  it('is refused work for with 503 while it loads its data, and keeps what was accepted before', async () => {
    const commands = Number(/^total_commands_processed:(\d+)/m.exec(await redis.info('stats'))?.[1]);
    await cluster.redis.stop();
    // Microseconds a command that it reads back: some of all there were.
    const delayUs = Math.round(4e6 / commands);
    await appendFile(join(cluster.folder, 'redis', 'redis.conf'), `key-load-delay ${delayUs}\n`);
    const starting = cluster.redis.start();
    await until(() => refusal('queue_unavailable'));
    await starting;
    await until(answered);
  });
});
