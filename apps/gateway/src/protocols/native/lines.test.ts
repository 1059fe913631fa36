import { createGzip, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { Harness } from '../../test-support/harness.js';
import { identityModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../../test-support/redis.js';
import { embeddingOf, StandInWorker } from '../../test-support/stand-in-worker.js';
import { StreamClient } from '../../test-support/stream-client.js';

const PROBLEM_KEYS = ['type', 'title', 'status', 'detail', 'code', 'requestId'];

describe('a stream of lines', () => {
  const harness = new Harness();
  const text = uniqueName('lines');
  const redis = testRedis();
  let gateway: Gateway;
  const url = (model = text, query = '', at = gateway): string =>
    `${at.url}/v1/models/${model}/predict${query}`;
  const inputs = (count: number, from = 1): { inputs: string }[] =>
    Array.from({ length: count }, (_, i) => ({ inputs: `line ${from + i}` }));
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

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

  const served = (model: string): Promise<void> =>
    until('the model is served', async () => (await fetch(`${gateway.url}/v2/models/${model}/ready`)).ok);

  /** A model whose worker answers nothing until it is let go. */
  async function held(prefix: string) {
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let parts = 0;
    const model = uniqueName(prefix);
    const worker = await harness.worker(textModel(model), {
      before: async () => {
        parts += 1;
        if (parts === 1) await gate;
      },
    });
    await served(model);
    return { model, worker, letGo, held: () => until('a line is held', () => parts > 0) };
  }

  async function queueOnly(prefix: string): Promise<StandInWorker> {
    const worker = new StandInWorker(textModel(uniqueName(prefix)));
    await worker.announce();
    const timer = setInterval(() => void worker.announce().catch(() => undefined), 500);
    harness.onRelease(() => {
      clearInterval(timer);
      return worker.stop();
    });
    await served(modelOf(worker));
    return worker;
  }
  const modelOf = ({ queue }: StandInWorker): string => /^(.*)@/.exec(queue.replace(/[{}]/g, ''))?.[1] ?? '';

  before(async () => {
    harness.onRelease(() => redis.disconnect());
    await harness.worker(textModel(text), {
      verdict: (item) =>
        item.startsWith('bad')
          ? { status: 'failed', code: 'text_too_long', message: 'Too long.' }
          : { status: 'ok', tokens: 3 },
    });
    gateway = await harness.gateway({ maxBodyBytes: 4096 });
  });
  after(() => harness.release());

  it('is answered line by line with what predict answers, the number in front', async () => {
    const client = new StreamClient(url()).send(...inputs(3), { inputs: ['a', 'b'] }).end();
    await client.over;
    const { statusCode, headers } = await client.head;
    expect(statusCode).to.equal(200);
    expect(headers['content-type']).to.equal('application/x-ndjson');
    expect(headers).to.include.keys('x-request-id', 'x-content-type-options');
    expect(client.numbers).to.deep.equal([1, 2, 3, 4]);
    expect(new Set(client.lines.map(({ id }) => id))).to.have.length(4);
    const [first, , , fourth] = client.lines;
    expect(Object.keys(first ?? {})).to.deep.equal(['line', 'id', 'model', 'version', 'outputs', 'timings']);
    const [output] = (first?.outputs ?? []) as number[][];
    expect(output?.[1]).to.be.closeTo(embeddingOf('line 1')[1] ?? 0, 1e-6);
    expect(fourth?.outputs).to.have.length(2);
  });

  it('may be called JSON Lines, come in gzip, and end without a line feed', async () => {
    const body = gzipSync(
      inputs(500)
        .map((line) => JSON.stringify(line))
        .join('\r\n'),
    );
    const headers = { 'content-type': 'application/jsonl; charset=utf-8', 'content-encoding': 'gzip' };
    const response = await fetch(url(), { method: 'POST', headers, body });
    const lines = (await response.text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).line)).to.deep.equal(upTo(500));
  });

  it('is answered with nothing when it has no lines', async () => {
    const response = await fetch(url(), {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
    });
    expect(response.status).to.equal(200);
    expect(await response.text()).to.equal('');
  });

  it('answers faulty lines with their errors, and the others all the same', async () => {
    const client = new StreamClient(url())
      .send({ inputs: 'fine' }, '', '{"inputs": "a"', { inputs: [] }, { inputs: 'x'.repeat(5000) })
      .send({ inputs: 'a', parital: true }, { inputs: 'bad' }, { inputs: ['a', 'bad'], partial: true })
      .send('"\ud800"', { inputs: 'fine' })
      .end();
    await client.over;
    expect(client.numbers).to.deep.equal(upTo(10));
    const said = client.lines.map(({ error }) => error && [error.status, error.code, error.field]);
    expect(said).to.deep.equal([
      undefined,
      [400, 'invalid_json', 'body'],
      [400, 'invalid_json', 'body'],
      [400, 'invalid_input', 'inputs'],
      [413, 'body_too_large', 'body'],
      [400, 'invalid_input', 'parital'],
      [400, 'text_too_long', 'inputs[0]'],
      undefined,
      [400, 'invalid_input', 'body'],
      undefined,
    ]);
    expect(client.lines[1]?.error).to.include.keys(PROBLEM_KEYS);
    expect(client.lines[7]?.outputs?.[1]).to.equal(null);
  });

  it('is answered before it ends, as clients that wait for each answer need it', async () => {
    const client = new StreamClient(url());
    for (let i = 1; i <= 10; i++) {
      client.send(...inputs(1, i));
      await until('the line is answered', () => client.lines.length === i);
    }
    client.end();
    await client.over;
    expect(client.complete).to.equal(true);
    expect(client.numbers).to.deep.equal(upTo(10));
  });

  it('is answered to clients that read only when they have sent all', async () => {
    const client = new StreamClient(url(), {}, false).send(...inputs(2000)).end();
    await until('all is sent', () => client.request.writableFinished);
    await client.read();
    await client.over;
    expect(client.numbers).to.deep.equal(upTo(2000));
  });

  it('answers in the order of its lines, or as they are done', async () => {
    for (const order of ['input', 'finished']) {
      const { model, worker, letGo, held: isHeld } = await held(`order-${order}`);
      const client = new StreamClient(url(model, `?order=${order}`)).send({ inputs: 'slow' });
      await isHeld();
      client.send({ inputs: 'quick' }).end();
      await until('the second is done', () => worker.answered.length === 1);
      if (order === 'finished') await until('it is answered', () => client.lines.length === 1);
      else expect(client.lines).to.deep.equal([]);
      letGo();
      await client.over;
      expect(client.numbers).to.deep.equal(order === 'input' ? [1, 2] : [2, 1]);
    }
  });

  it('lets a slow line hold back no more than the window', async () => {
    const { model, worker, letGo, held: isHeld } = await held('window');
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

  it('is refused as a whole for what is wrong with it as a whole', async () => {
    const body = '{"inputs":"a"}\n';
    const faults: [string, Record<string, string>, number, string, string | undefined][] = [
      [url('nobody'), {}, 404, 'model_not_found', undefined],
      [url(text, '?order=sideways'), {}, 400, 'invalid_input', 'order'],
      [url(), { 'idempotency-key': 'mine' }, 400, 'invalid_input', 'Idempotency-Key'],
      [url(), { prefer: 'respond-async' }, 400, 'invalid_input', 'Prefer'],
      [url(), { 'millrace-callback': 'https://example.org' }, 400, 'invalid_input', 'Millrace-Callback'],
      [url(), { 'millrace-priority': 'first' }, 400, 'invalid_input', 'Millrace-Priority'],
      [url(), { 'content-encoding': 'br' }, 415, 'unsupported_media_type', 'Content-Encoding'],
      [url(), { 'content-encoding': 'gzip' }, 400, 'invalid_encoding', 'body'],
      [
        url(),
        { 'content-type': 'application/x-ndjson; charset=latin1' },
        415,
        'unsupported_media_type',
        'Content-Type',
      ],
    ];
    for (const [at, headers, status, code, field] of faults) {
      const type = { 'content-type': 'application/x-ndjson' };
      const response = await fetch(at, { method: 'POST', body, headers: { ...type, ...headers } });
      const problem = (await response.json()) as { code: string; field?: string };
      expect([response.status, problem.code, problem.field], JSON.stringify(headers)).to.deep.equal([
        status,
        code,
        ...(field === undefined ? [problem.field] : [field]),
      ]);
    }
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

  it('gives each line its own wait', async () => {
    const worker = await queueOnly('waits');
    const client = new StreamClient(url(modelOf(worker)), { prefer: 'wait=1' })
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

  it('runs at the priority and belongs to the trace that its headers say, or the line', async () => {
    const model = uniqueName('bulk-lines');
    const worker = await harness.worker(textModel(model));
    await served(model);
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const client = new StreamClient(url(model), { 'millrace-priority': 'bulk', traceparent })
      .send(...inputs(2), { inputs: 'urgent', priority: 'interactive' })
      .end();
    await client.over;
    expect(client.numbers).to.deep.equal([1, 2, 3]);
    expect(worker.answered.every((part) => part.traceparent === traceparent)).to.equal(true);
    const said = worker.answered.map(({ priority, count }) => [priority, count]);
    expect(said).to.have.deep.members([
      [100, 2],
      [10, 1],
    ]);
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

  it('says that a line was refused whose time does not last for another try', async () => {
    const worker = await queueOnly('refused');
    const tight = await harness.gateway({ maxQueuedItems: 1 });
    const at = url(modelOf(worker), '?order=finished', tight);
    const client = new StreamClient(at).send({ inputs: 'a', waitMs: 3000 });
    await until('the first waits', async () => (await waitingJobs(redis, worker.queue)) === 1);
    client.send({ inputs: 'b', waitMs: 500 }).end();
    await until('the second is over', () => client.lines.length > 0);
    expect(client.lines[0]).to.have.property('line', 2);
    expect(client.lines[0]?.error).to.include({ status: 429, code: 'queue_full' });
    client.request.destroy();
  });

  it('waits for a worker that comes in time', async () => {
    const model = uniqueName('late');
    const first = await harness.worker(textModel(model));
    await served(model);
    await first.stop();
    const gone = async (): Promise<boolean> => !(await fetch(`${gateway.url}/v2/models/${model}/ready`)).ok;
    await until('no worker is there', gone);
    const client = new StreamClient(url(model)).send(...inputs(3)).end();
    await until('the stream has begun', () => client.request.writableFinished);
    await harness.worker(textModel(model));
    await client.over;
    expect(client.numbers).to.deep.equal([1, 2, 3]);
    expect(client.lines.filter(({ error }) => error)).to.deep.equal([]);
  });

  it('takes the work of a client that goes away back', async () => {
    const worker = await queueOnly('gone-lines');
    const gone = await metric(gateway, 'millrace_clients_gone_total');
    const client = new StreamClient(url(modelOf(worker))).send(...inputs(3));
    await until('its work waits', async () => (await waitingJobs(redis, worker.queue)) > 0);
    client.request.destroy();
    await until('its work is gone', async () => (await waitingJobs(redis, worker.queue)) === 0);
    await until('it is counted', async () => (await metric(gateway, 'millrace_clients_gone_total')) > gone);
  });

  it('may take as long as it likes, but not stand still', async () => {
    const strict = await harness.gateway({ requestTimeoutMs: 400 });
    const client = new StreamClient(url(text, '', strict));
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
    const { model, letGo, held: isHeld } = await held('drained');
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
    const worker = await queueOnly('grace-lines');
    const going = await harness.gateway({ graceMs: 1000 });
    const client = new StreamClient(url(modelOf(worker), '', going)).send(...inputs(2));
    await until('its work waits', async () => (await waitingJobs(redis, worker.queue)) > 0);
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
