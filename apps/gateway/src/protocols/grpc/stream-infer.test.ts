import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../../gateway.js';
import { GrpcClient, type InferCall, type InferStream, textCall } from '../../test-support/grpc-client.js';
import { Harness } from '../../test-support/harness.js';
import { everyTypeModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../../test-support/redis.js';
import { StandInWorker } from '../../test-support/stand-in-worker.js';

describe('a stream of requests', () => {
  const harness = new Harness();
  const text = uniqueName('stream-text');
  const tensors = uniqueName('stream-tensors');
  let gateway: Gateway;
  let client: GrpcClient;
  let redis: Redis;
  let held: Promise<void> | undefined;

  before(async () => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    await harness.worker(textModel(text), {
      before: async ({ payload }) => {
        const slow = 'inline' in payload && Buffer.from(payload.inline, 'base64').includes('slow');
        if (slow) await held;
      },
    });
    await harness.worker(everyTypeModel(tensors));
    gateway = await harness.gateway();
    client = new GrpcClient(gateway.grpc?.address ?? '');
    harness.onRelease(() => client.close());
  });
  after(() => harness.release());
  const idsOf = ({ answers }: InferStream) => answers.map(({ infer_response }) => infer_response?.id);

  it('is answered request by request, and ends well', async () => {
    const stream = client.stream();
    const ids = Array.from({ length: 300 }, (_, i) => `request ${i}`);
    for (const id of ids) stream.send(textCall(text, [id], { id }));
    stream.end();
    expect(await stream.ended).to.include({ code: status.OK });
    expect(idsOf(stream)).to.deep.equal(ids);
    expect(stream.answers.filter(({ error_message }) => error_message !== '')).to.deep.equal([]);
  });

  it('is answered in the order of its requests, which are under way together', async () => {
    let release: () => void = () => undefined;
    held = new Promise((resolve) => {
      release = resolve;
    });
    const quick = uniqueName('stream-quick');
    const worker = await harness.worker(textModel(quick));
    await until('it is known', () =>
      client.call('ModelReady', { name: quick }).then(
        () => true,
        () => false,
      ),
    );
    const stream = client.stream();
    stream.send(textCall(text, ['slow'], { id: 'first' }));
    stream.send(textCall(quick, ['quick'], { id: 'second' }));
    stream.send(textCall(quick, [''], { id: 'third' }));
    await until('the second is done', () => worker.answered.length === 1);
    expect(stream.answers).to.deep.equal([]);
    release();
    stream.end();
    expect(await stream.ended).to.include({ code: status.OK });
    expect(idsOf(stream)).to.deep.equal(['first', 'second', 'third']);
  });

  it('goes on behind a request that fails, and says which it was', async () => {
    const stream = client.stream();
    stream.send(textCall('nobody', ['a'], { id: 'unknown model' }));
    await until('it is answered', () => stream.answers.length === 1);
    stream.send(textCall(text, [''], { id: 'empty text' }));
    await until('that too', () => stream.answers.length === 2);
    stream.send(textCall(text, ['a'], { id: 'good' }));
    stream.end();
    expect(await stream.ended).to.include({ code: status.OK });
    expect(idsOf(stream)).to.deep.equal(['unknown model', 'empty text', 'good']);
    const [unknown, empty, good] = stream.answers.map(({ error_message }) => error_message);
    expect(unknown).to.include('No such model');
    expect(empty).to.include('inputs[0].data[0]');
    expect(good).to.equal('');
  });

  it('marks the last answer to a request where it is asked to', async () => {
    const stream = client.stream();
    const parameters = { triton_enable_empty_final_response: { bool_param: true } };
    stream.send(textCall(text, ['a'], { parameters }));
    stream.end();
    await stream.ended;
    expect(stream.answers[0]?.infer_response?.parameters).to.deep.equal({
      triton_final_response: { bool_param: true },
    });
  });

  it('takes its work back when it is cancelled', async () => {
    const idle = new StandInWorker(textModel(uniqueName('stream-idle')));
    await idle.announce();
    harness.onRelease(() => idle.stop());
    const name = idle.queue.replace(/^\{?([^@]+)@.*$/, '$1');
    await until('it is known', () =>
      client.call('ModelReady', { name }).then(
        () => true,
        () => false,
      ),
    );
    const stream = client.stream();
    for (const id of ['a', 'b', 'c']) stream.send(textCall(name, [id], { id }));
    await until('all wait', async () => (await waitingJobs(redis, idle.queue)) === 3);
    stream.cancel();
    expect((await stream.ended).code).to.equal(status.CANCELLED);
    await until('none waits', async () => (await waitingJobs(redis, idle.queue)) === 0);
  });

  it('takes no more requests than it can have under way', async () => {
    const idle = new StandInWorker(textModel(uniqueName('stream-many')));
    await idle.announce();
    harness.onRelease(() => idle.stop());
    const name = idle.queue.replace(/^\{?([^@]+)@.*$/, '$1');
    await until('it is known', () =>
      client.call('ModelReady', { name }).then(
        () => true,
        () => false,
      ),
    );
    const stream = client.stream();
    for (let i = 0; i < 400; i++) stream.send(textCall(name, ['a'], { id: String(i) }));
    // While the stream is full another one is served: what waits is in the connection alone.
    await until('it is full', async () => (await waiting()) >= 256);
    await client.infer(textCall(text, ['a']));
    expect(await waiting()).to.equal(256);
    stream.cancel();
    await until('none waits', async () => (await waiting()) === 0);

    async function waiting(): Promise<number> {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return Number(/millrace_gateway_waiting_requests (\d+)/.exec(metrics)?.[1]);
    }
  });

  it('has no idempotency key: that names one request', async () => {
    const named = new GrpcClient(gateway.grpc?.address ?? '', { 'idempotency-key': 'x' });
    harness.onRelease(() => named.close());
    const { code, details } = await named.stream().ended;
    expect(code).to.equal(status.INVALID_ARGUMENT);
    expect(details).to.include('idempotency-key');
  });

  it('carries tensors as a single call does', async () => {
    const call: InferCall = {
      model_name: tensors,
      inputs: [
        {
          name: 'int64',
          datatype: 'INT64',
          shape: [1, 2],
          contents: { int64_contents: ['-1', '9007199254740993'] },
        },
      ],
    };
    const stream = client.stream();
    stream.send(call);
    stream.end();
    await stream.ended;
    const { body } = await client.infer(call);
    expect(stream.answers[0]?.infer_response).to.deep.equal(body);
    expect(body.raw_output_contents[0]?.readBigInt64LE(8)).to.equal(9007199254740993n);
  });
});
