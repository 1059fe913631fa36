import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import express from 'express';
import { nativeErrors } from '../protocols/native/problem.js';
import { Harness } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { uniqueName, until } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';
import { ArrivingBodies, allowLongBody } from './arriving-bodies.js';
import { listen, portOf } from './server.js';
import { answerUnreadable } from './unreadable.js';

const MOST_MS = 400;

describe('a body that takes its time', () => {
  const harness = new Harness();
  // So that Express prints no stacks of clients that are cut off.
  const app = express().set('env', 'test');
  let server: Server;
  let resumed = false;
  let waiting = true;

  app.post('/plain', (req, res) => {
    req.resume().on('end', () => res.end('whole'));
  });
  app.post('/long', (req, res) => {
    allowLongBody(req, res);
    req.resume().on('end', () => res.end('whole'));
  });
  app.post('/read-by-pieces', async (req, res) => {
    allowLongBody(req, res);
    let bytes = 0;
    for await (const piece of req) bytes += piece.length;
    res.end(`${bytes} bytes`);
  });
  app.post('/paused', async (req, res) => {
    allowLongBody(req, res);
    req.pause().on('end', () => res.end('whole'));
    await sleep(3 * MOST_MS);
    resumed = true;
    req.resume();
  });
  app.post('/waits', (req, res) => {
    allowLongBody(req, res, { waits: () => waiting });
    req.resume().on('end', () => res.end('whole'));
  });
  app.post('/begun', (req, res) => {
    allowLongBody(req, res, { end: () => res.end('over') });
    req.resume();
    res.write('begun');
  });
  app.post('/unread', () => undefined);
  app.post('/early', (_req, res) => {
    res.end('early');
  });
  app.post('/early-and-long', (req, res) => {
    allowLongBody(req, res);
    res.end('early');
  });
  app.get('/slow', async (_req, res) => {
    await sleep(2 * MOST_MS);
    res.end('slow');
  });

  before(async () => {
    const arriving = new ArrivingBodies(MOST_MS, nativeErrors);
    const times = { headersTimeoutMs: 20_000, requestTimeoutMs: MOST_MS, keepAliveMs: 20_000 };
    server = await listen(app, nativeErrors, { host: '127.0.0.1', port: 0, ...times }, arriving);
    answerUnreadable(server, nativeErrors);
    harness.onRelease(() => {
      arriving.stop();
      server.closeAllConnections();
      server.close();
    });
  });
  after(() => harness.release());

  const post = (path: string, bytes: number): string =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;
  const client = (): RawClient => new RawClient({ host: '127.0.0.1', port: portOf(server) });
  /** Far beyond the limit in all, and never still for as long. */
  const slowly = async (to: RawClient): Promise<void> => {
    for (let i = 0; i < 12; i++) {
      to.say('x');
      await sleep(MOST_MS / 4);
    }
  };

  it('is refused, read or not', async () => {
    for (const path of ['/plain', '/unread']) {
      const slow = client().say(post(path, 1000)).drip('x', 50);
      await slow.closed;
      expect(slow.statuses, path).to.deep.equal([408]);
      expect(slow.heard)
        .to.include('"code":"request_timeout"')
        .and.match(/\r\nConnection: close\r\n/);
    }
  });

  it('is cut off behind its answer, with no second one', async () => {
    for (const path of ['/early', '/early-and-long']) {
      const slow = client().say(post(path, 1000)).drip('x', 50);
      await slow.closed;
      expect(slow.statuses, path).to.deep.equal([200]);
      expect(slow.heard.endsWith('early')).to.equal(true);
    }
  });

  it('is refused behind the answers before it', async () => {
    const slow = client()
      .say(`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${post('/plain', 1000)}`)
      .drip('x', 50);
    await slow.closed;
    expect(slow.statuses).to.deep.equal([200, 408]);
  });

  it('may take as long as it goes on, where the route allows it', async () => {
    for (const [path, answer] of [
      ['/long', 'whole'],
      ['/read-by-pieces', '12 bytes'],
    ] as const) {
      const slow = client().say(post(path, 12));
      await slowly(slow);
      await until('it is answered', () => slow.heard.endsWith(answer));
      expect(slow.statuses).to.deep.equal([200]);
      slow.socket.destroy();
    }
  });

  it('may not stand still for as long', async () => {
    for (const path of ['/long', '/read-by-pieces']) {
      const still = client().say(`${post(path, 12)}x`);
      await still.closed;
      expect(still.statuses, path).to.deep.equal([408]);
    }
  });

  it('stands still by no fault of its client while the route does not read', async () => {
    const slow = client().say(`${post('/paused', 4)}xx`);
    await until('it is read again', () => resumed);
    slow.say('xx');
    await until('it is answered', () => slow.heard.endsWith('whole'));
    expect(slow.statuses).to.deep.equal([200]);
    slow.socket.destroy();
  });

  it('may stand still while its client waits for something of ours, and no longer', async () => {
    const still = client().say(`${post('/waits', 12)}x`);
    await sleep(3 * MOST_MS);
    expect(still.statuses).to.deep.equal([]);
    waiting = false;
    await still.closed;
    expect(still.statuses).to.deep.equal([408]);
  });

  it('lets the route end an answer that it has begun', async () => {
    const still = client().say(`${post('/begun', 12)}x`);
    await until('the answer is over', () => still.heard.endsWith('4\r\nover\r\n0\r\n\r\n'));
    await still.closed;
    expect(still.statuses).to.deep.equal([200]);
  });

  it('does not hinder the requests behind one that came whole', async () => {
    const quick = client();
    for (let i = 1; i <= 3; i++) {
      quick.say(`${post('/plain', 2)}xx`);
      await until('it is answered', () => quick.statuses.length === i);
      await sleep(MOST_MS / 2);
    }
    expect(quick.statuses).to.deep.equal([200, 200, 200]);
    quick.socket.destroy();
  });

  it('is refused in the shape of the door that it took', async () => {
    const gateway = await harness.gateway({ requestTimeoutMs: MOST_MS });
    const slow = new RawClient(gateway)
      .say('POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n')
      .say('Content-Length: 1000\r\n\r\n{')
      .drip(' ', 50);
    await slow.closed;
    expect(slow.statuses).to.deep.equal([408]);
    expect(slow.heard)
      .to.match(/\r\nContent-Type: application\/json/)
      .and.match(/\r\n\r\n{"error":{/);
  });

  it('is refused at the end of the grace when the gateway goes, however long it may take', async () => {
    const model = uniqueName('slow-body');
    const queueOnly = new StandInWorker(textModel(model));
    await queueOnly.announce();
    harness.onRelease(() => queueOnly.stop());
    const gateway = await harness.gateway({ graceMs: 1000 });
    const slow = new RawClient(gateway)
      .say(`POST /v1/models/${model}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`)
      .say('Content-Length: 1000\r\n\r\n{')
      .drip(' ', 50);
    const idle = new RawClient(gateway).say('GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('both are served', () => idle.statuses.length === 1);
    const started = performance.now();
    await gateway.close();
    await slow.closed;
    expect(performance.now() - started).to.be.below(3000);
    expect(slow.statuses).to.deep.equal([503]);
    expect(slow.heard)
      .to.include('"code":"shutting_down"')
      .and.match(/\r\nRetry-After: 1\r\n/);
    idle.socket.destroy();
  });
});
