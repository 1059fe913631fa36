import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { inputs, LinesDoor, upTo } from '../../test-support/lines-door.js';
import { textModel } from '../../test-support/models.js';
import { uniqueName, until } from '../../test-support/redis.js';
import { embeddingOf } from '../../test-support/stand-in-worker.js';
import { StreamClient } from '../../test-support/stream-client.js';

const PROBLEM_KEYS = ['type', 'title', 'status', 'detail', 'code', 'requestId'];

describe('a stream of lines', () => {
  const door = new LinesDoor();
  const { harness, hold, served, texts, url } = door;
  before(() => door.open());
  after(() => door.close());

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
      const { model, worker, letGo, isHeld } = await hold(`order-${order}`);
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

  it('waits for a worker that comes in time', async () => {
    const model = uniqueName('late');
    const first = await harness.worker(textModel(model));
    await served(model);
    await first.stop();
    const gone = async (): Promise<boolean> =>
      !(await fetch(`${door.gateway.url}/v2/models/${model}/ready`)).ok;
    await until('no worker is there', gone);
    const client = new StreamClient(url(model)).send(...inputs(3)).end();
    await until('the stream has begun', () => client.request.writableFinished);
    await harness.worker(textModel(model));
    await client.over;
    expect(client.numbers).to.deep.equal([1, 2, 3]);
    expect(client.lines.filter(({ error }) => error)).to.deep.equal([]);
  });

  it('is refused as a whole for what is wrong with it as a whole', async () => {
    const body = '{"inputs":"a"}\n';
    const faults: [string, Record<string, string>, number, string, string | undefined][] = [
      [url('nobody'), {}, 404, 'model_not_found', undefined],
      [url(texts, '?order=sideways'), {}, 400, 'invalid_input', 'order'],
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
});
