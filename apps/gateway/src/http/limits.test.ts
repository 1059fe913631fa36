import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Harness } from '../test-support/harness.js';
import { identityModel } from '../test-support/models.js';
import { uniqueName, until } from '../test-support/redis.js';

describe('a client that stops reading', () => {
  const harness = new Harness();
  after(() => harness.release());

  it('is cut off, so that its answer does not stay in memory', async () => {
    const model = uniqueName('unread');
    await harness.worker(identityModel(model));
    const gateway = await harness.gateway();
    const body = JSON.stringify({ inputs: { bytes: ['x'.repeat(4_000_000)] } });
    const socket = connect(gateway.port, gateway.host);
    socket.pause();
    // More than the buffers of both ends hold.
    for (let i = 0; i < 6; i++) {
      socket.write(
        `POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n\r\n${body}`,
      );
    }
    socket.on('error', () => undefined);
    const open = async (): Promise<number> => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return Number(/^millrace_gateway_connections (\d+)$/m.exec(metrics)?.[1]);
    };
    await until('it is connected', async () => (await open()) >= 2);
    const others = 2;
    const deadline = performance.now() + 25_000;
    while ((await open()) > others && performance.now() < deadline) await sleep(200);
    expect(await open(), 'only the connections of the metrics are left').to.be.at.most(others);
    socket.destroy();
  });
});
