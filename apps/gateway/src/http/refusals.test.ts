import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { Harness } from '../test-support/harness.js';
import { identityModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';

const TOGETHER = 800;
const MOST_MS = 10;

describe('refusals of requests that come all at once', () => {
  const harness = new Harness();
  after(() => harness.release());

  it('are each answered at once, not when all have been read', async () => {
    const model = uniqueName('burst');
    await harness.worker(identityModel(model));
    const { host, port } = await harness.gateway();
    const request =
      `POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
      'Content-Length: 2\r\n\r\n{}';
    const sockets = await Promise.all(Array.from({ length: TOGETHER }, () => connected(host, port)));
    // Once for the compiler, which may take its time.
    for (let round = 0; round < 2; round++) {
      const times = await Promise.all(sockets.map((socket) => serverMs(socket, request)));
      times.sort((a, b) => a - b);
      if (round > 0) expect(times[TOGETHER / 2]).to.be.below(MOST_MS);
    }
    for (const socket of sockets) socket.destroy();
  });
});

function connected(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => resolve(socket));
    socket.once('error', reject);
  });
}

/** What the server says that its answer took it. */
function serverMs(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve) => {
    socket.once('data', (answer) => {
      expect(answer.toString()).to.match(/^HTTP\/1\.1 400 /);
      resolve(Number(/\btotal;dur=([\d.]+)/.exec(answer.toString())?.[1]));
    });
    socket.write(request);
  });
}
