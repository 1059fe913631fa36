import { once } from 'node:events';
import { connect } from 'node:net';
import { workerMetrics } from '@millrace/shared';
import { expect } from 'chai';
import { type HealthServer, startHealthServer } from './health-server.js';

describe("a worker's health port", () => {
  let server: HealthServer;
  let ready = true;

  before(async () => {
    const at = { host: '127.0.0.1', port: 0 };
    server = await startHealthServer(
      at,
      () => 'serving',
      () => ready,
      workerMetrics(),
    );
  });
  after(() => server.close());

  it('says whether the worker is ready, and takes nothing else', async () => {
    const status = async (path: string, method = 'GET'): Promise<number> =>
      (await fetch(server.url + path, { method })).status;
    expect(await status('/health/ready')).to.equal(200);
    ready = false;
    expect(await status('/health/ready')).to.equal(503);
    expect(await status('/health/live')).to.equal(200);
    expect(await status('/metrics')).to.equal(200);
    expect(await status('/health/ready', 'POST')).to.equal(405);
    expect(await status('/../models')).to.equal(404);
  });

  it('cuts off who says nothing, or says it too slowly', async () => {
    const { port, hostname } = new URL(server.url);
    const silent = connect(Number(port), hostname);
    const slow = connect(Number(port), hostname);
    slow.write('GET /metrics HTTP/1.1\r\n');
    const drip = setInterval(() => slow.writable && slow.write('X: x\r\n'), 100);
    const closed = [silent, slow].map((socket) =>
      once(socket.on('error', () => undefined).resume(), 'close'),
    );
    await Promise.all(closed);
    clearInterval(drip);
  });
});
