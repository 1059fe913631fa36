import { status } from '@grpc/grpc-js';
import { DATATYPES, elementBytes, type Part } from '@millrace/shared';
import { expect } from 'chai';
import type { Gateway } from '../../gateway.js';
import { GrpcClient, type InferAnswer, rawTexts, textCall } from '../../test-support/grpc-client.js';
import { get, Harness } from '../../test-support/harness.js';
import { DIMENSIONS, everyTypeModel, textModel } from '../../test-support/models.js';
import { uniqueName, until } from '../../test-support/redis.js';
import { embeddingOf, type StandInWorker } from '../../test-support/stand-in-worker.js';

describe('the gRPC door', () => {
  const harness = new Harness();
  const text = uniqueName('grpc-text');
  const tensors = uniqueName('grpc-tensors');
  let gateway: Gateway;
  let client: GrpcClient;
  let texts: StandInWorker;
  const parts: Part[] = [];

  before(async () => {
    texts = await harness.worker(textModel(text), {
      verdict: (item) => {
        if (item.startsWith('bad')) return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        return item.startsWith('cut') ? { status: 'ok', truncated: true } : { status: 'ok' };
      },
      before: (part) => void parts.push(part),
    });
    await harness.worker(everyTypeModel(tensors));
    gateway = await harness.gateway({ models: [text, tensors], maxJobItems: 3 });
    client = new GrpcClient(gateway.grpc?.address ?? '');
    harness.onRelease(() => client.close());
  });
  after(() => harness.release());
  const lastPart = (): Part => {
    const part = parts.at(-1);
    if (!part) throw new Error('No part was asked for.');
    return part;
  };
  const metric = async (line: RegExp): Promise<number> => {
    const response = await fetch(`${gateway.url}/metrics`);
    return Number(line.exec(await response.text())?.[1] ?? 0);
  };

  it('tells of the server and its models', async () => {
    expect((await client.call('ServerLive', {})).body).to.deep.equal({ live: true });
    expect((await client.call('ServerReady', {})).body).to.deep.equal({ ready: true });
    expect((await client.call('ModelReady', { name: text })).body).to.deep.equal({ ready: true });
    const { body: server } = await client.call<{ name: string; version: string }>('ServerMetadata', {});
    expect(server).to.deep.equal((await get(`${gateway.url}/v2`)).body);
    const { body: metadata } = await client.call('ModelMetadata', { name: text, version: '1' });
    expect(metadata).to.deep.equal({
      name: text,
      versions: ['1'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }],
      outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, DIMENSIONS] }],
    });
    const { body: config } = await client.call('ModelConfig', { name: text });
    expect(config.config).to.deep.include({
      name: text,
      max_batch_size: 100,
      input: [{ name: 'text', data_type: 'TYPE_STRING', dims: [1], optional: false }],
      output: [{ name: 'embedding', data_type: 'TYPE_FP32', dims: [DIMENSIONS] }],
    });
    const { body: index } = await client.call<{ models: object[] }>('RepositoryIndex', { ready: true });
    expect(index.models).to.deep.include({ name: text, version: '1', state: 'READY', reason: '' });
  });

  it('embeds texts over several jobs, in order, and echoes the id', async () => {
    const items = Array.from({ length: 7 }, (_, i) => `sentence ${i}`);
    const { body, trailers } = await client.infer(textCall(text, items, { id: 'mine' }));
    expect(body).to.include({ model_name: text, model_version: '1', id: 'mine' });
    expect(body.outputs).to.have.length(1);
    expect(body.outputs[0]).to.deep.include({ name: 'embedding', datatype: 'FP32', shape: [7, DIMENSIONS] });
    for (const [i, item] of items.entries()) {
      const value = body.raw_output_contents[0]?.readFloatLE((i * DIMENSIONS + 1) * 4) ?? 0;
      expect(value).to.be.closeTo(embeddingOf(item)[1] ?? 0, 1e-6);
    }
    expect(trailers.get('x-request-id')).to.deep.equal([lastPart().requestId]);
    expect(lastPart().requestId).not.to.equal('mine');
  });

  it('takes texts as typed contents and in the shape [N,1]', async () => {
    const contents = { bytes_contents: ['one', 'two'].map((item) => Buffer.from(item)) };
    const input = { name: 'text', datatype: 'BYTES', shape: [2, 1], contents };
    const typed = await client.infer({ model_name: text, inputs: [input] });
    const raw = await client.infer(textCall(text, ['one', 'two']));
    expect(typed.body).to.deep.equal(raw.body);
  });

  it('names the texts that were cut', async () => {
    const { body } = await client.infer(textCall(text, ['a', 'cut', 'b', 'cut']));
    expect(body.parameters.truncated?.string_param).to.equal('1,3');
  });

  it('returns every datatype as it came, raw', async () => {
    for (const datatype of DATATYPES) {
      const bytes = elementBytes(datatype);
      const raw =
        datatype === 'BYTES'
          ? rawTexts(['a', 'é', '', 'b'])
          : Buffer.from(
              Array.from({ length: 4 * bytes }, (_, i) => (datatype === 'BOOL' ? i % 2 : i * 7 + 1)),
            );
      const name = datatype.toLowerCase();
      const { body } = await client.infer({
        model_name: tensors,
        inputs: [{ name, datatype, shape: [2, 2] }],
        raw_input_contents: [raw],
      });
      expect(body.outputs[0]).to.deep.include({ name: `${name}_out`, datatype, shape: [2, 2] });
      expect(body.raw_output_contents[0]).to.deep.equal(raw);
    }
  });

  it('returns the outputs asked for, in their order, for several inputs', async () => {
    const input = (name: string, datatype: string) => ({ name, datatype, shape: [1, 1] });
    const { body } = await client.infer({
      model_name: tensors,
      inputs: [input('int8', 'INT8'), input('uint8', 'UINT8'), input('bool', 'BOOL')],
      outputs: [{ name: 'bool_out' }, { name: 'int8_out' }],
      raw_input_contents: [Buffer.from([5]), Buffer.from([6]), Buffer.from([1])],
    });
    expect(body.outputs.map(({ name }) => name)).to.deep.equal(['bool_out', 'int8_out']);
    expect(body.raw_output_contents).to.deep.equal([Buffer.from([1]), Buffer.from([5])]);
  });

  it('passes on priority, parameters, trace context and the time that is allowed', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const traced = new GrpcClient(gateway.grpc?.address ?? '', { traceparent });
    harness.onRelease(() => traced.close());
    const parameters = {
      priority: { int64_param: 3 },
      timeout: { int64_param: 2_000_000 },
      mine: { string_param: 'yes' },
    };
    await traced.infer(textCall(text, ['a'], { parameters }));
    const part = lastPart();
    expect(part).to.include({ priority: 100, traceparent });
    expect(part.parameters).to.deep.equal({ mine: 'yes' });
    expect(part.deadlineAt - part.stamps.received).to.equal(2000);
    await client.infer(textCall(text, ['a']));
    expect(lastPart()).to.include({ priority: 10 });
    expect(lastPart().deadlineAt - lastPart().stamps.received).to.equal(10_000);
  });

  it("takes a call's deadline for the request's, cut to the longest wait", async () => {
    const allowed = async (ms: number): Promise<number> => {
      await client.infer(textCall(text, ['a']), { deadline: Date.now() + ms });
      return lastPart().deadlineAt - lastPart().stamps.received;
    };
    expect(await allowed(5000)).to.be.within(3000, 5002);
    expect(await allowed(20_000)).to.be.within(18_000, 20_002);
    expect(await allowed(3_600_000)).to.equal(60_000);
    const parameters = { timeout: { int64_param: 30_000_000 } };
    await client.infer(textCall(text, ['a'], { parameters }), { deadline: Date.now() + 5000 });
    expect(lastPart().deadlineAt - lastPart().stamps.received).to.be.within(3000, 5002);
  });

  it('fails the request when an item fails, naming it', async () => {
    const error = await client.refusal(client.infer(textCall(text, ['a', 'bad 1', 'b', 'bad 2'])));
    expect(error.code).to.equal(status.INVALID_ARGUMENT);
    expect(error.details).to.include('inputs[1]').and.include('1, 3');
    expect(error.metadata.get('x-request-id')).to.have.length(1);
  });

  it('answers a retry under an idempotency key with the first answer, a fault included', async () => {
    const named = new GrpcClient(gateway.grpc?.address ?? '', { 'idempotency-key': uniqueName('key') });
    harness.onRelease(() => named.close());
    const first = await named.infer(textCall(text, ['once']));
    const runs = texts.answered.length;
    expect((await named.infer(textCall(text, ['once']))).body).to.deep.equal(first.body);
    expect(texts.answered).to.have.length(runs);
    const other = await named.refusal(named.infer(textCall(text, ['twice'])));
    expect(other.code).to.equal(status.INVALID_ARGUMENT);
    const failing = new GrpcClient(gateway.grpc?.address ?? '', { 'idempotency-key': uniqueName('key') });
    harness.onRelease(() => failing.close());
    const fault = await failing.refusal(failing.infer(textCall(text, ['bad'])));
    const again = await failing.refusal(failing.infer(textCall(text, ['bad'])));
    expect([again.code, again.details]).to.deep.equal([fault.code, fault.details]);
    expect(texts.answered).to.have.length(runs + 1);
  });

  it('counts requests and errors as every door does, and health apart', async () => {
    const line = (model: string, door: string, http: number) =>
      new RegExp(`millrace_requests_total\\{model="${model}",door="${door}",status="${http}"\\} (\\d+)`);
    const [good, bad, health] = [
      line(text, 'grpc', 200),
      line(text, 'grpc', 400),
      line('', 'operations', 200),
    ];
    const before = await Promise.all([good, bad, health].map(metric));
    await client.infer(textCall(text, ['a']));
    await client.refusal(client.infer(textCall(text, ['bad'])));
    await client.call('ServerLive', {});
    await until('all are counted', async () => (await metric(bad)) === (before[1] ?? 0) + 1);
    expect(await metric(good)).to.equal((before[0] ?? 0) + 1);
    expect(await metric(health)).to.be.above(before[2] ?? 0);
    expect(
      await metric(/millrace_errors_total\{model="grpc-text[^"]*",code="text_too_long"\} (\d+)/),
    ).to.be.above(0);
  });

  it('keeps the statistics that the HTTP door has', async () => {
    const grpc = await client.call('ModelStatistics', { name: text });
    const { body } = await get(`${gateway.url}/v2/models/${text}/stats`);
    expect(grpc.body).to.deep.equal(body);
    const all = await client.call<{ model_stats: { name: string }[] }>('ModelStatistics', {});
    expect(all.body.model_stats.map(({ name }) => name)).to.include.members([text, tensors]);
  });

  it('takes a compressed message', async () => {
    // 2 is gzip.
    const zipping = new GrpcClient(
      gateway.grpc?.address ?? '',
      {},
      { 'grpc.default_compression_algorithm': 2 },
    );
    harness.onRelease(() => zipping.close());
    const plain = await client.infer(textCall(text, ['squeeze me']));
    const zipped = await zipping.infer(textCall(text, ['squeeze me']));
    expect(zipped.body).to.deep.equal(plain.body);
  });

  it('carries a tensor that is many frames long', async () => {
    const raw = Buffer.alloc(4_000_000, 'long');
    const call = {
      model_name: tensors,
      inputs: [{ name: 'fp32', datatype: 'FP32', shape: [1, 1_000_000] }],
      raw_input_contents: [raw],
    };
    const { body }: { body: InferAnswer } = await client.infer(call);
    expect(body.raw_output_contents[0]?.equals(raw)).to.equal(true);
  });
});
