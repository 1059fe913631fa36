import { createGzip } from 'node:zlib';
import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { inputs, LinesDoor, upTo } from '../../test-support/lines-door.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../../test-support/redis.js';
import { StandInWorker } from '../../test-support/stand-in-worker.js';
import { StreamClient } from '../../test-support/stream-client.js';

describe('a stream of lines, where it is held back or breaks off', () => {
  const redis = testRedis();
  const door = new LinesDoor();
  const { harness, hold, served, texts, url } = door;
  before(() => door.open());
  after(() => {
    redis.disconnect();
    return door.close();
  });

  /** A model whose worker is announced and takes nothing. */
  async function queueOnly(prefix: string): Promise<{ model: string; queue: string }> {
    const model = uniqueName(prefix);
    const worker = new StandInWorker(textModel(model));
    await worker.announce();
    const timer = setInterval(() => void worker.announce().catch(() => undefined), 500);
    harness.onRelease(() => {
      clearInterval(timer);
      return worker.stop();
    });
    await served(model);
    return { model, queue: worker.queue };
  }

  async function metric(at: Gateway, name: string): Promise<number> {
    const metrics = await (await fetch(`${at.url}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:{[^}]*})? (\\d+)$`, 'm').exec(metrics)?.[1] ?? 0);
  }

  /** Waits until a count grows no more. */
  async function stillness(count: () => number): Promise<void> {
    let before = -1;
    await until('no more are taken on', async () => {
      const stands = before === count();
      before = count();
      await new Promise((resolve) => setTimeout(resolve, 300));
      return stands;
    });
  }

  it('lets a slow line hold back no more than the window', async () => {
    const { model, worker, letGo, isHeld } = await hold('window');
    const client = new StreamClient(url(model)).send({ inputs: 'slow' });
    await isHeld();
    client.send(...inputs(5000, 2)).end();
    const items = (): number => worker.answered.reduce((sum, { count }) => sum + count, 0);
    await until('others are done', () => items() > 0);
    await stillness(items);
    expect(items()).to.be.at.most(1024);
    letGo();
    await client.over;
    expect(client.numbers).to.deep.equal(upTo(5001));
    expect(client.lines.every(({ error }) => error === undefined)).to.equal(true);
  });

  it('is not read while its client does not read', async () => {
    const model = uniqueName('unread-lines');
    const worker = await harness.worker(identityModel(model));
    const roomy = await harness.gateway();
    const client = new StreamClient(url(model, '', roomy), {}, false);
    const line = { inputs: { bytes: ['x'.repeat(100_000)] } };
    client.send(...new Array(1000).fill(line)).end();
    await until('the answers wait', async () => (await metric(roomy, 'millrace_gateway_unread_bytes')) > 0);
    await stillness(() => worker.answered.length);
    // Both ends' buffers, and the window.
    expect(worker.answered.length).to.be.below(400);
    expect(client.request.writableFinished).to.equal(false);
    await client.read();
    await client.over;
    expect(client.numbers).to.deep.equal(upTo(1000));
    expect(await metric(roomy, 'millrace_gateway_unread_bytes')).to.equal(0);
  });

  it('is cut off when its client does not read for too long', async () => {
    const model = uniqueName('never-read-lines');
    const worker = await harness.worker(identityModel(model));
    const strict = await harness.gateway({ requestTimeoutMs: 1500 });
    const client = new StreamClient(url(model, '', strict), {}, false);
    const line = { inputs: { bytes: ['x'.repeat(100_000)] } };
    client.send(...new Array(600).fill(line)).end();
    await until('it is cut off', () => client.request.destroyed, 15_000);
    expect(worker.answered.length).to.be.below(400);
    expect(await metric(strict, 'millrace_gateway_unread_bytes')).to.equal(0);
  });

  it('is read more slowly, not refused, where more waits than may', async () => {
    const model = uniqueName('tight');
    await harness.worker(textModel(model), {
      before: () => new Promise((resolve) => setTimeout(resolve, 20)),
    });
    const tight = await harness.gateway({ maxQueuedItems: 40 });
    const client = new StreamClient(url(model, '', tight)).send(...inputs(400)).end();
    await client.over;
    expect(client.numbers).to.deep.equal(upTo(400));
    expect(client.lines.filter(({ error }) => error)).to.deep.equal([]);
  });

  it('gives each line its own wait', async () => {
    const { model } = await queueOnly('waits');
    const client = new StreamClient(url(model), { prefer: 'wait=1' })
      .send({ inputs: 'a', waitMs: 150 }, { inputs: 'b' })
      .end();
    await until('the first is over', () => client.lines.length === 1);
    expect(client.lines[0]?.error).to.include({ status: 504, code: 'deadline_exceeded' });
    await client.over;
    expect(client.lines.map(({ error }) => error?.code)).to.deep.equal([
      'deadline_exceeded',
      'deadline_exceeded',
    ]);
  });

  it('says that a line was refused whose time does not last for another try', async () => {
    const { model, queue } = await queueOnly('refused');
    const tight = await harness.gateway({ maxQueuedItems: 1 });
    const at = url(model, '?order=finished', tight);
    const client = new StreamClient(at).send({ inputs: 'a', waitMs: 3000 });
    await until('the first waits', async () => (await waitingJobs(redis, queue)) === 1);
    client.send({ inputs: 'b', waitMs: 500 }).end();
    await until('the second is over', () => client.lines.length > 0);
    expect(client.lines[0]).to.have.property('line', 2);
    expect(client.lines[0]?.error).to.include({ status: 429, code: 'queue_full' });
    client.request.destroy();
  });

  it('says in its last line where it can be read no further', async () => {
    const gzip = createGzip();
    const client = new StreamClient(url(), { 'content-encoding': 'gzip' });
    gzip.on('data', (piece) => client.request.write(piece));
    gzip.write(`${JSON.stringify({ inputs: 'a' })}\n{"inputs":`);
    gzip.flush();
    await until('the first is answered', () => client.lines.length === 1);
    client.request.end('garbage');
    await client.over;
    expect(client.complete).to.equal(true);
    expect(client.lines[0]).to.have.property('outputs');
    expect(client.numbers).to.deep.equal([1, 2]);
    expect(client.lines[1]?.error).to.include({ status: 400, code: 'invalid_encoding' });
  });

  it('takes the work of a client that goes away back', async () => {
    const { model, queue } = await queueOnly('gone-lines');
    const gone = await metric(door.gateway, 'millrace_clients_gone_total');
    const client = new StreamClient(url(model)).send(...inputs(3));
    await until('its work waits', async () => (await waitingJobs(redis, queue)) > 0);
    client.request.destroy();
    await until('its work is gone', async () => (await waitingJobs(redis, queue)) === 0);
    await until(
      'it is counted',
      async () => (await metric(door.gateway, 'millrace_clients_gone_total')) > gone,
    );
  });

  it('may take as long as it likes, but not stand still', async () => {
    const strict = await harness.gateway({ requestTimeoutMs: 400 });
    const client = new StreamClient(url(texts, '', strict));
    for (let i = 1; i <= 8; i++) {
      client.send(...inputs(1, i));
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await client.over;
    expect(client.complete).to.equal(true);
    expect(client.numbers).to.deep.equal(upTo(9));
    expect(client.lines.at(-1)?.error).to.include({ status: 408, code: 'request_timeout' });
    client.request.destroy();
  });

  it('is ended by a gateway that goes: what is under way is answered, the rest named', async () => {
    const { model, letGo, isHeld } = await hold('drained');
    const going = await harness.gateway({ graceMs: 8000 });
    const client = new StreamClient(url(model, '', going)).send(...inputs(2));
    await isHeld();
    const closing = going.close();
    client.send(...inputs(1, 3));
    letGo();
    await client.over;
    await closing;
    expect(client.complete).to.equal(true);
    expect(client.numbers).to.deep.equal([1, 2, 3]);
    expect(client.lines.slice(0, 2).every(({ outputs }) => outputs !== undefined)).to.equal(true);
    expect(client.lines[2]?.error).to.include({ status: 503, code: 'shutting_down' });
  });

  it('is ended within the grace, whatever is not answered by then', async () => {
    const { model, queue } = await queueOnly('grace-lines');
    const going = await harness.gateway({ graceMs: 1000 });
    const client = new StreamClient(url(model, '', going)).send(...inputs(2));
    await until('its work waits', async () => (await waitingJobs(redis, queue)) > 0);
    const started = performance.now();
    const closing = going.close();
    await client.over;
    expect(performance.now() - started).to.be.below(2500);
    expect(client.lines.map(({ line, error }) => [line, error?.code])).to.deep.equal([
      [1, 'shutting_down'],
      [2, 'shutting_down'],
      [3, 'shutting_down'],
    ]);
    await closing;
  });
});
