import { MillraceApiError, MillraceClient, MillraceTimeoutError, tensor, textsOf } from '@millrace/client';
import { expect } from 'chai';
import { until } from './support/client.js';
import { Cluster } from './support/cluster.js';
import { cosine, INT8_TOLERANCE, KNOWN_COSINES, MINILM } from './support/minilm.js';

const MANY = Array.from({ length: 2000 }, (_, i) => `A sentence for which there is no time, number ${i}.`);

describe('the client, with a real server', () => {
  let cluster: Cluster;
  let client: MillraceClient;
  const failure = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => expect.fail('it should have failed'),
      (error: unknown) => error,
    );

  before(async () => {
    cluster = await Cluster.start({ models: [MINILM, 'identity'] });
    client = new MillraceClient({ baseUrl: cluster.url });
  });
  after(() => cluster.stop());

  it('predicts: known cosines, cut texts, stages', async () => {
    for (const { a, b, cosine: known } of KNOWN_COSINES) {
      const { outputs } = await client.predict(MINILM, [a, b]);
      expect(cosine(outputs[0] ?? [], outputs[1] ?? [])).to.be.closeTo(known, INT8_TOLERANCE);
    }
    const { truncated, timings, model } = await client.predict(MINILM, [
      'short',
      'much too long '.repeat(400),
    ]);
    expect(truncated).to.deep.equal([1]);
    expect(timings).to.include.keys('infer', 'total');
    expect(model).to.equal(MINILM);
  });

  it('embeds the same numbers that the native door says, exactly', async () => {
    const { outputs } = await client.predict(MINILM, 'That is a happy person');
    const one = await client.embed(MINILM, 'That is a happy person');
    const [listed] = await client.embed(MINILM, ['That is a happy person', 'Today is a sunny day']);
    expect(one).to.have.length(384);
    // The native door rounds.
    for (const [i, value] of one.entries()) {
      expect(outputs[0]?.[i]).to.be.closeTo(value, 1e-5);
      expect(listed?.[i]).to.be.closeTo(value, 1e-4);
    }
    const error = await failure(client.embed(MINILM, ['fine', '']));
    expect(error).to.include({ status: 400, code: 'invalid_input' });
  });

  it('sends and gets tensors in binary, every bit kept', async () => {
    const sent = {
      fp32: tensor('FP32', [0.1, -1e-30, 3.4e38, Number.NaN, -0, Number.POSITIVE_INFINITY], [2, 3]),
      int64: tensor('INT64', [2n ** 63n - 1n, -(2n ** 63n)], [2, 1]),
      bool: tensor('BOOL', [true, false], [2, 1]),
      uint8: tensor('UINT8', [0, 255], [2, 1]),
      bytes: tensor('BYTES', ['', 'жаба 🐸', 'a\nb', Uint8Array.of(0xc3, 0xa9)], [2, 2]),
    };
    const answer = await client.infer('identity', sent, { id: 'mine' });
    expect(answer).to.include({ model: 'identity', id: 'mine' });
    for (const [name, given] of Object.entries(sent)) {
      expect(answer.outputs[`${name}_out`], name).to.deep.equal(given);
    }
    expect(textsOf(answer.output('bytes_out', 'BYTES'))).to.deep.equal(['', 'жаба 🐸', 'a\nb', 'é']);
    const some = await client.infer('identity', sent, { outputs: ['bool_out'] });
    expect(Object.keys(some.outputs)).to.deep.equal(['bool_out']);
  });

  it('infers texts: the numbers that the native door says', async () => {
    const answer = await client.infer(MINILM, { text: tensor('BYTES', ['Today is a sunny day']) });
    const { data, shape } = answer.output('embedding', 'FP32');
    expect(shape).to.deep.equal([1, 384]);
    const { outputs } = await client.predict(MINILM, 'Today is a sunny day');
    for (const [i, value] of data.entries()) expect(outputs[0]?.[i]).to.be.closeTo(value, 1e-6);
  });

  it('tells of the server: ready, models, their signatures', async () => {
    expect(await client.ready()).to.equal(true);
    expect((await client.models()).map(({ id }) => id).sort()).to.deep.equal([MINILM, 'identity']);
    const model = await client.model(MINILM);
    expect(model).to.deep.include({ id: MINILM, task: 'text-embedding', versions: ['1'], ready: true });
    expect(model.outputs[0]).to.deep.include({ name: 'embedding', datatype: 'FP32' });
    expect(model.limits.maxRequestItems).to.be.above(0);
  });

  it('rejects with the status, code, field and request id that every door says', async () => {
    const native = (await failure(client.predict(MINILM, ['fine', 7 as never]))) as MillraceApiError;
    expect(native).to.be.instanceOf(MillraceApiError);
    expect(native).to.include({ status: 400, code: 'invalid_input', field: 'inputs[1]' });
    const infer = await failure(client.infer('identity', { nonsense: tensor('FP32', [1], [1, 1]) }));
    expect(infer).to.have.property('status', 400);
    expect(infer).to.have.property('message').that.contains('nonsense');
    const unknown = (await failure(client.model('no-such-model'))) as MillraceApiError;
    expect(unknown).to.include({ status: 404, code: 'model_not_found' });
    for (const { requestId } of [native, infer as MillraceApiError, unknown]) {
      expect(requestId).to.match(/^[0-9a-f-]{36}$/);
    }
  });

  it('gives a call up on its signal or when its time is over, and the server takes the work back', async () => {
    const gone = await goneClients();
    const abort = new AbortController();
    const call = failure(client.predict(MINILM, MANY, { signal: abort.signal }));
    await until(async () => (await gauge('millrace_gateway_waiting_requests')) > 0);
    abort.abort();
    expect(await call).to.have.property('name', 'AbortError');
    await until(async () => (await goneClients()) === gone + 1);
    await untilIdle();
    expect(await failure(client.predict(MINILM, MANY, { timeoutMs: 200 }))).to.be.instanceOf(
      MillraceTimeoutError,
    );
    await until(async () => (await goneClients()) === gone + 2);
  });

  it('tells the server how long to wait', async () => {
    await untilIdle();
    const error = await failure(client.predict(MINILM, MANY, { waitMs: 30, retries: 0 }));
    expect(error).to.include({ status: 504, code: 'deadline_exceeded' });
  });

  it('gets through a gateway that refuses for a while', async () => {
    const gateway = await cluster.addGateway({ MILLRACE_MAX_QUEUED_ITEMS: '40' });
    await cluster.untilReady(gateway.url);
    const patient = new MillraceClient({ baseUrl: gateway.url, retries: 30, timeoutMs: 25_000 });
    const texts = Array.from({ length: 30 }, (_, i) => `one of several, number ${i}`);
    const answers = await Promise.all(Array.from({ length: 4 }, () => patient.predict(MINILM, texts)));
    for (const { outputs } of answers) expect(outputs).to.have.length(30);
    const refused = await gauge('millrace_errors_total', gateway.url, 'queue_full');
    expect(refused).to.be.above(0);
  });

  /** Behind others a list that long may be refused at once. */
  function untilIdle(): Promise<void> {
    return until(async () => (await gauge('millrace_queue_jobs')) === 0);
  }

  async function gauge(name: string, url = cluster.url, label = ''): Promise<number> {
    const text = await (await fetch(`${url}/metrics`)).text();
    const rows = text.split('\n').filter((row) => row.startsWith(name) && row.includes(label));
    return rows.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(' '))), 0);
  }

  function goneClients(): Promise<number> {
    return gauge('millrace_clients_gone_total');
  }
});
