import { expect } from 'chai';
import { MillraceClient } from './client.js';
import { MillraceProtocolError } from './errors.js';
import { tensor } from './tensors.js';
import { json, ScriptedServer, type Step } from './test-support/scripted-server.js';

/** Base64 of FP32 numbers, as the protocol wants it. */
function base64(...numbers: number[]): string {
  return Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
}

function embeddings(...data: unknown[]): Step {
  return json(200, {
    object: 'list',
    data: data.map((embedding, index) => ({ index, embedding })).reverse(),
  });
}

describe('the client', () => {
  let server: ScriptedServer;
  let client: MillraceClient;
  const last = () => server.received.at(-1);
  const sent = () => JSON.parse(String(last()?.body));

  before(async () => {
    server = await ScriptedServer.start();
    client = new MillraceClient({ baseUrl: `${server.url}/behind/`, apiKey: 'secret', retries: 0 });
  });
  after(() => server.stop());

  it('keeps the path before the doors, and sends its key and the headers it is given', async () => {
    server.answer(json(200, { data: [{ id: 'm' }] }));
    expect(await client.models({ headers: { traceparent: 'abc' } })).to.deep.equal([{ id: 'm' }]);
    expect(last()).to.include({ method: 'GET', path: '/behind/v1/models' });
    expect(last()?.headers).to.include({ authorization: 'Bearer secret', traceparent: 'abc' });
  });

  it('names models and versions in paths as they are', async () => {
    server.answer(json(200, {}));
    await client.model('org/name with space');
    expect(last()?.path).to.equal('/behind/v1/models/org%2Fname%20with%20space');
    await client.predict('m', 'a', { version: '2' });
    expect(last()?.path).to.equal('/behind/v1/models/m/versions/2/predict');
  });

  it('sends what predict is given, and fills in what an answer leaves out', async () => {
    server.answer(json(200, { id: 'r', model: 'm', version: '1', outputs: [null], timings: { total: 1 } }));
    const answer = await client.predict('m', [{ x: [[1]] }], {
      partial: true,
      waitMs: 1500,
      parameters: { k: 3 },
    });
    expect(sent()).to.deep.equal({
      inputs: [{ x: [[1]] }],
      partial: true,
      waitMs: 1500,
      parameters: { k: 3 },
    });
    expect(answer).to.deep.include({ outputs: [null], truncated: [], errors: [], timings: { total: 1 } });
  });

  it('gives one embedding for one text, and a list for a list, in order and bit by bit', async () => {
    server.answer(embeddings(base64(0.1, -1e-30)));
    expect(await client.embed('m', 'a')).to.deep.equal(Float32Array.of(0.1, -1e-30));
    expect(sent()).to.deep.equal({ model: 'm', input: 'a', encoding_format: 'base64' });
    server.answer(embeddings(base64(1), base64(2), base64(3)));
    const list = await client.embed('m', ['a', 'b', 'c'], { dimensions: 1, waitMs: 1500 });
    expect(list).to.deep.equal([Float32Array.of(1), Float32Array.of(2), Float32Array.of(3)]);
    expect(sent()).to.have.property('dimensions', 1);
    expect(last()?.headers.prefer).to.equal('wait=2');
  });

  it('refuses embeddings that are not what it asked for', async () => {
    const wrong = [embeddings(), embeddings([0.5]), embeddings('AAA='), embeddings('!'), embeddings('', '')];
    for (const step of [...wrong, json(200, { data: [{ index: 1, embedding: base64(1) }] })]) {
      server.answer(step);
      const error = await client.embed('m', 'a').catch((error: unknown) => error);
      expect(error).to.be.instanceOf(MillraceProtocolError);
    }
  });

  it('sends tensors in binary, and reads binary ones', async () => {
    const header = JSON.stringify({
      model_name: 'm',
      model_version: '3',
      id: 'mine',
      outputs: [{ name: 'y', datatype: 'INT64', shape: [1], parameters: { binary_data_size: 8 } }],
    });
    server.answer((res) => {
      res.setHeader('inference-header-content-length', header.length);
      res.end(Buffer.concat([Buffer.from(header), Buffer.from([5, 0, 0, 0, 0, 0, 0, 0])]));
    });
    const answer = await client.infer('m', { x: tensor('UINT8', [7]) }, { id: 'mine', waitMs: 20 });
    expect(last()?.path).to.equal('/behind/v2/models/m/infer');
    expect(last()?.headers['content-type']).to.equal('application/octet-stream');
    const length = Number(last()?.headers['inference-header-content-length']);
    expect(JSON.parse(String(last()?.body.subarray(0, length)))).to.deep.include({
      id: 'mine',
      parameters: { timeout: 20_000, binary_data_output: true },
    });
    expect([...(last()?.body.subarray(length) ?? [])]).to.deep.equal([7]);
    expect(answer).to.include({ model: 'm', version: '3', id: 'mine' });
    expect(answer.output('y', 'INT64').data).to.deep.equal(BigInt64Array.of(5n));
    expect(() => answer.output('y', 'FP32')).to.throw(MillraceProtocolError, 'y is INT64, not FP32 of m.');
    expect(() => answer.output('toString', 'FP32')).to.throw(MillraceProtocolError, 'not among the outputs');
  });

  it('says whether the gateway is ready, also where there is none', async () => {
    server.answer(json(200, { ready: true }));
    expect(await client.ready()).to.equal(true);
    server.answer(json(503, { ready: false }));
    expect(await client.ready()).to.equal(false);
    expect(server.received).to.have.length(1);
    const gone = await ScriptedServer.start();
    await gone.stop();
    expect(await new MillraceClient({ baseUrl: gone.url }).ready()).to.equal(false);
  });

  it('refuses an answer that is no JSON', async () => {
    server.answer((res) => res.setHeader('content-type', 'text/html').end('<html>'));
    const error = await client.models().catch((error: unknown) => error);
    expect(error).to.be.instanceOf(MillraceProtocolError).with.property('message').that.contains('text/html');
  });

  it('refuses options that are wrong when it is made or called', async () => {
    expect(() => new MillraceClient({ baseUrl: 'nowhere' })).to.throw(TypeError);
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => new MillraceClient({ baseUrl: server.url, timeoutMs })).to.throw(RangeError, 'timeoutMs');
    }
    expect(() => new MillraceClient({ baseUrl: server.url, retries: 0.5 })).to.throw(RangeError, 'retries');
    const error = await client.predict('m', 'a', { timeoutMs: 0 }).catch((error: unknown) => error);
    expect(error).to.be.instanceOf(RangeError);
  });

  it('uses the fetch it is given', async () => {
    const asked: string[] = [];
    const own: typeof fetch = async (url) => {
      asked.push(String(url));
      return Response.json({ data: [] });
    };
    await new MillraceClient({ baseUrl: 'http://elsewhere.test', fetch: own }).models();
    expect(asked).to.deep.equal(['http://elsewhere.test/v1/models']);
  });
});
