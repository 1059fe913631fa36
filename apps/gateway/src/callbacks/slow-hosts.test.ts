import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectRedis, createLogger, gatewayMetrics, RedisClock, untilReady } from '@millrace/shared';
import { expect } from 'chai';
import { Harness } from '../test-support/harness.js';
import { testRedisUrl, uniqueName, until } from '../test-support/redis.js';
import { Deliveries } from './deliveries.js';
import { HostGates } from './host-gates.js';

describe('callbacks to a host that does not answer', () => {
  const harness = new Harness();
  let deliveries: Deliveries;

  before(async () => {
    const redis = connectRedis(testRedisUrl(), 'producer', 'test');
    const fetching = connectRedis(testRedisUrl(), 'worker', 'test');
    await Promise.all([untilReady(redis), untilReady(fetching)]);
    const clock = new RedisClock();
    await clock.start(redis);
    deliveries = new Deliveries({
      redis,
      fetching,
      settings: {
        callbackSecret: 'a secret',
        callbackHosts: [],
        callbackAllowHttp: true,
        callbackAllowPrivate: true,
        callbackTimeoutMs: 60_000,
        callbacksPerHost: 2,
      },
      clock,
      metrics: gatewayMetrics(),
      logger: createLogger('silent', {}),
      queue: `{${uniqueName('callbacks')}}`,
    });
    harness.onRelease(async () => {
      await deliveries.close();
      clock.stop();
      redis.disconnect();
      fetching.disconnect();
    });
  });
  after(() => harness.release());

  async function listen(listener: RequestListener): Promise<string> {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    harness.onRelease(() => {
      server.close();
      server.closeAllConnections();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  it('hold up none to other hosts, and are told all the same once it answers', async () => {
    let answers: (() => void)[] | undefined = [];
    let told = 0;
    const slow = await listen((_req, res) => {
      const answer = () => {
        told += 1;
        res.writeHead(204).end();
      };
      if (answers) answers.push(answer);
      else answer();
    });
    let good = 0;
    const quick = await listen((_req, res) => {
      good += 1;
      res.writeHead(204).end();
    });
    const many = Array.from({ length: 400 }, () =>
      deliveries.add({ url: slow, id: uniqueName('slow'), body: '{}' }),
    );
    await Promise.all(many);
    await until('as many wait as may', () => answers?.length === 2);
    await deliveries.add({ url: quick, id: uniqueName('quick'), body: '{}' });
    await until('the other host was told', () => good === 1);

    const waiting = answers;
    answers = undefined;
    for (const answer of waiting) answer();
    await until('the slow host was told of all', () => told === many.length);
  });
});

describe('HostGates', () => {
  it('puts off whoever would wait behind as many as may be under way, one after the other', async () => {
    const gates = new HostGates(1, 1);
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const calls = [gates.pass('host', () => held)];
    expect(gates.putOffMs('host')).to.equal(undefined);
    calls.push(gates.pass('host', () => held));
    const [first = 0, second = 0] = [gates.putOffMs('host'), gates.putOffMs('host')];
    expect(first).to.be.above(0);
    expect(second).to.be.above(first);
    expect(gates.putOffMs('other')).to.equal(undefined);
    letGo();
    await Promise.all(calls);
    expect(gates.putOffMs('host')).to.equal(undefined);
  });
});
