import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { makeApiKey } from '../../admission/api-keys.js';
import type { Gateway } from '../../gateway.js';
import { GrpcClient, HEALTH, INFERENCE, type InferCall, textCall } from '../../test-support/grpc-client.js';
import { Harness } from '../../test-support/harness.js';
import { everyTypeModel, textModel } from '../../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../../test-support/redis.js';
import { StandInWorker } from '../../test-support/stand-in-worker.js';

const INFER = '/inference.GRPCInferenceService/ModelInfer';

describe('calls at the gRPC door', () => {
  let harness: Harness;
  let redis: Redis;

  beforeEach(() => {
    harness = new Harness();
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
  });
  afterEach(() => harness.release());

  const clientOf = (gateway: Gateway, headers: Record<string, string> = {}): GrpcClient => {
    const client = new GrpcClient(gateway.grpc?.address ?? '', headers);
    harness.onRelease(() => client.close());
    return client;
  };
  /** A model that is announced and that nobody serves: its requests wait. */
  const idle = async (): Promise<StandInWorker> => {
    const worker = new StandInWorker(textModel(uniqueName('grpc-idle')));
    await worker.announce();
    harness.onRelease(() => worker.stop());
    return worker;
  };
  const modelOf = (worker: StandInWorker): string => worker.queue.replace(/^\{?([^@]+)@.*$/, '$1');
  const waiting = (worker: StandInWorker) => waitingJobs(redis, worker.queue);
  const metric = async (gateway: Gateway, line: RegExp): Promise<number> => {
    const response = await fetch(`${gateway.url}/metrics`);
    return Number(line.exec(await response.text())?.[1] ?? 0);
  };

  it('take their work back when they are cancelled', async () => {
    const worker = await idle();
    const gateway = await harness.gateway();
    const cancel = new AbortController();
    const client = clientOf(gateway);
    const refused = client.refusal(
      client.infer(textCall(modelOf(worker), ['a']), { cancelled: cancel.signal }),
    );
    await until('the job waits', async () => (await waiting(worker)) === 1);
    cancel.abort();
    expect((await refused).code).to.equal(status.CANCELLED);
    await until('the job is gone', async () => (await waiting(worker)) === 0);
    await until('it is counted', async () => {
      return (await metric(gateway, /millrace_requests_total\{[^}]*door="grpc",status="499"\} (\d+)/)) === 1;
    });
    expect(await metric(gateway, /millrace_clients_gone_total\{[^}]*\} (\d+)/)).to.equal(1);
  });

  it('take their work back when their connection is lost', async () => {
    const worker = await idle();
    const gateway = await harness.gateway();
    const client = clientOf(gateway);
    const refused = client.refusal(client.infer(textCall(modelOf(worker), ['a'])));
    await until('the job waits', async () => (await waiting(worker)) === 1);
    client.close();
    const session = connectHttp2(`http://${gateway.grpc?.address}`);
    const call = session.request(callHeaders());
    call.on('error', () => undefined).end(framed(bytesOf(textCall(modelOf(worker), ['b']))));
    await until('both wait', async () => (await waiting(worker)) === 2);
    session.destroy();
    await until('one is gone', async () => (await waiting(worker)) === 1);
    await gateway.close();
    expect((await refused).code).to.equal(status.UNAVAILABLE);
  });

  it('end at their deadline, their work with them', async () => {
    const worker = await idle();
    const gateway = await harness.gateway();
    const client = clientOf(gateway);
    const call = client.infer(textCall(modelOf(worker), ['a']), { deadline: Date.now() + 1500 });
    const refused = client.refusal(call);
    await until('the job waits', async () => (await waiting(worker)) === 1);
    expect((await refused).code).to.equal(status.DEADLINE_EXCEEDED);
    await until('the job is gone', async () => (await waiting(worker)) === 0);
    await until('it is counted', async () => {
      return (await metric(gateway, /millrace_requests_total\{[^}]*door="grpc",status="504"\} (\d+)/)) === 1;
    });
  });

  it('end when the time is over that the request allows', async () => {
    const worker = await idle();
    const client = clientOf(await harness.gateway());
    const parameters = { timeout: { int64_param: 50_000 } };
    const error = await client.refusal(client.infer(textCall(modelOf(worker), ['a'], { parameters })));
    expect(error.code).to.equal(status.DEADLINE_EXCEEDED);
    expect(error.details).to.include('"timeout"');
  });

  it('need a key of the right scope, but for health', async () => {
    const { key, entry } = makeApiKey('alice');
    const other = makeApiKey('bob', ['admin']);
    const model = uniqueName('grpc-keyed');
    const worker = await harness.worker(textModel(model));
    const gateway = await harness.gateway({ apiKeys: [entry, other.entry] });
    const anyone = clientOf(gateway);
    for (const method of [
      'ServerMetadata',
      'ModelMetadata',
      'ModelReady',
      'RepositoryIndex',
      'ModelStatistics',
    ]) {
      const error = await anyone.refusal(anyone.call(method, {}));
      expect([method, error.code]).to.deep.equal([method, status.UNAUTHENTICATED]);
    }
    const error = await anyone.refusal(anyone.infer(textCall(model, ['a'])));
    expect(error.code).to.equal(status.UNAUTHENTICATED);
    expect(error.details).to.include('authorization: Bearer');
    const stream = anyone.stream();
    expect((await stream.ended).code).to.equal(status.UNAUTHENTICATED);
    expect((await anyone.call('ServerLive', {})).body).to.deep.equal({ live: true });
    expect((await anyone.call('ServerReady', {})).body).to.deep.equal({ ready: true });
    expect((await anyone.call('Check', {}, { service: HEALTH })).body).to.deep.equal({ status: 'SERVING' });

    const wrong = clientOf(gateway, { authorization: 'Bearer mr_wrong' });
    expect((await wrong.refusal(wrong.infer(textCall(model, ['a'])))).code).to.equal(status.UNAUTHENTICATED);
    const bob = clientOf(gateway, { authorization: `Bearer ${other.key}` });
    expect((await bob.refusal(bob.infer(textCall(model, ['a'])))).code).to.equal(status.PERMISSION_DENIED);
    for (const [name, value] of [
      ['authorization', `Bearer ${key}`],
      ['x-api-key', key],
    ] as const) {
      await clientOf(gateway, { [name]: value }).infer(textCall(model, ['a']));
    }
    expect(worker.answered.map(({ tenant }) => tenant)).to.deep.equal(['alice', 'alice']);
  });

  it('are told when to try again, and by which name they went', async () => {
    const worker = await idle();
    const gateway = await harness.gateway({ maxQueuedItems: 1 });
    const client = clientOf(gateway, { 'x-request-id': 'theirs' });
    const first = client.refusal(client.infer(textCall(modelOf(worker), ['a'])));
    await until('the job waits', async () => (await waiting(worker)) === 1);
    const error = await client.refusal(client.infer(textCall(modelOf(worker), ['a'])));
    expect(error.code).to.equal(status.RESOURCE_EXHAUSTED);
    expect(Number(error.metadata.get('retry-after')[0])).to.be.within(1, 60);
    expect(error.metadata.get('x-request-id')).to.deep.equal(['theirs']);
    expect(error.metadata.get('x-millrace-request-id')).to.have.length(1);
    const gone = await client.refusal(client.infer(textCall('nobody', ['a'])));
    expect(gone.code).to.equal(status.NOT_FOUND);
    expect(gone.metadata.get('retry-after')).to.deep.equal([]);
    client.close();
    await gateway.close();
    await first;
  });

  it('are answered before the gateway goes, and new ones turned away', async () => {
    const worker = await idle();
    const gateway = await harness.gateway({ graceMs: 10_000 });
    const client = clientOf(gateway);
    const answer = client.infer(textCall(modelOf(worker), ['a']));
    const stream = client.stream();
    stream.send(textCall(modelOf(worker), ['b'], { id: 'streamed' }));
    await until('both jobs wait', async () => (await waiting(worker)) === 2);
    const watched: unknown[] = [];
    const watch = clientOf(gateway).watch(HEALTH, 'Watch', {});
    watch.on('data', ({ status: now }: { status: string }) => watched.push(now));
    await until('the watch is told', () => watched.length === 1);
    const closed = gateway.close();
    await until('new connections are refused', () => refuses(gateway));
    await harness.worker(textModel(modelOf(worker)));
    expect((await answer).body.outputs).to.have.length(1);
    const { code } = await stream.ended;
    expect(code).to.equal(status.UNAVAILABLE);
    expect(stream.answers.map(({ infer_response }) => infer_response?.id)).to.deep.equal(['streamed']);
    await closed;
  });

  it('that can be waited for no longer are told so', async () => {
    const worker = await idle();
    const gateway = await harness.gateway({ graceMs: 300 });
    const client = clientOf(gateway);
    const refused = client.refusal(client.infer(textCall(modelOf(worker), ['a'])));
    await until('the job waits', async () => (await waiting(worker)) === 1);
    await gateway.close();
    const error = await refused;
    expect(error.code).to.equal(status.UNAVAILABLE);
    await until('the job is gone', async () => (await waiting(worker)) === 0);
  });

  it('ask for health as the protocol of gRPC has it', async () => {
    const model = uniqueName('grpc-health');
    const gateway = await harness.gateway({ models: [model] });
    const client = clientOf(gateway);
    const check = (service: string) => client.call('Check', { service }, { service: HEALTH });
    expect((await check('')).body).to.deep.equal({ status: 'NOT_SERVING' });
    const watched: string[] = [];
    client.watch(HEALTH, 'Watch', {}).on('data', ({ status: now }: { status: string }) => watched.push(now));
    await until('the watch is told', () => watched.length === 1);
    await harness.worker(textModel(model));
    await until('the watch is told again', () => watched.length === 2);
    expect(watched).to.deep.equal(['NOT_SERVING', 'SERVING']);
    expect((await check('inference.GRPCInferenceService')).body).to.deep.equal({ status: 'SERVING' });
    expect((await client.refusal(check('nothing'))).code).to.equal(status.NOT_FOUND);
  });

  it('are not there where gRPC is off', async () => {
    expect((await harness.gateway({ grpcPort: 'off' })).grpc).to.equal(undefined);
  });

  it('come to the port that the settings name', async () => {
    const { grpc } = await harness.gateway();
    await harness
      .gateway({ grpcPort: grpc?.port })
      .then(() => expect.fail('It started.'))
      .catch((error: Error & { nextStep?: string }) => {
        expect(error.message).to.include(`Port ${grpc?.port} on 127.0.0.1 is already in use`);
        expect(error.nextStep).to.include('--grpc-port');
      });
  });

  it('are bounded together in what they have sent, unfinished messages included', async () => {
    const model = uniqueName('grpc-bytes');
    await harness.worker(everyTypeModel(model));
    const gateway = await harness.gateway({ maxQueuedBytes: 1_000_000 });
    const sessions = Array.from({ length: 8 }, () => connectHttp2(`http://${gateway.grpc?.address}`));
    harness.onRelease(() => {
      for (const session of sessions) session.destroy();
    });
    const ends: unknown[] = [];
    for (const session of sessions) {
      const call = session.request(callHeaders()).on('error', () => undefined);
      call.on('response', (headers) => {
        if (headers['grpc-status'] !== undefined) ends.push([headers['grpc-status'], headers['retry-after']]);
      });
      const head = Buffer.alloc(5);
      head.writeUInt32BE(2_000_000, 1);
      // Half of what was announced, and no more.
      call.write(Buffer.concat([head, Buffer.alloc(200_000)]));
    }
    await until('one is refused', () => ends.length > 0);
    expect(ends[0]).to.deep.equal([String(status.RESOURCE_EXHAUSTED), '1']);
    for (const session of sessions) session.destroy();
    const client = clientOf(gateway);
    const small: InferCall = {
      model_name: model,
      inputs: [{ name: 'int8', datatype: 'INT8', shape: [1, 1] }],
      raw_input_contents: [Buffer.from([1])],
    };
    await until('there is room again', () =>
      client.infer(small).then(
        () => true,
        () => false,
      ),
    );
  });

  it('are cut off when their answers wait unread and are too many together, the oldest first', async () => {
    const model = uniqueName('grpc-unread');
    await harness.worker(everyTypeModel(model));
    const gateway = await harness.gateway({ maxUnreadBytes: 3_000_000 });
    const large = bytesOf({
      model_name: model,
      inputs: [{ name: 'int8', datatype: 'INT8', shape: [1, 2_000_000] }],
      raw_input_contents: [Buffer.alloc(2_000_000)],
    });
    const unread = () => metric(gateway, /^millrace_gateway_unread_bytes (\d+)$/m);
    const ask = () => {
      const session = connectHttp2(`http://${gateway.grpc?.address}`);
      harness.onRelease(() => session.destroy());
      const call = session.request(callHeaders());
      call.on('error', () => undefined).end(framed(large));
      return call;
    };
    const first = ask();
    await until('an answer waits', async () => (await unread()) > 1_000_000);
    const second = ask();
    await until('one is cut off', () => first.closed);
    expect(first.rstCode).to.equal(8);
    let bytes = 0;
    second.on('data', (chunk: Buffer) => (bytes += chunk.byteLength));
    await until('the other is whole', () => bytes > 2_000_000);
    await until('none waits', async () => (await unread()) === 0);
    expect(await metric(gateway, /^millrace_gateway_unread_answers_cut_total (\d+)$/m)).to.equal(1);
  });

  it('may not take for ever to send a message', async () => {
    const gateway = await harness.gateway({ requestTimeoutMs: 1000 });
    const session = connectHttp2(`http://${gateway.grpc?.address}`);
    harness.onRelease(() => session.destroy());
    const silent = session.request(callHeaders()).on('error', () => undefined);
    const slow = session.request({
      ...callHeaders(),
      ':path': INFER.replace('ModelInfer', 'ModelStreamInfer'),
    });
    slow.on('error', () => undefined).write(Buffer.from([0, 0, 0]));
    const ended = (call: typeof silent) =>
      new Promise((resolve) => {
        call.on('response', (headers) => resolve(headers['grpc-status']));
      });
    expect(await Promise.all([ended(silent), ended(slow)])).to.deep.equal([
      String(status.DEADLINE_EXCEEDED),
      String(status.DEADLINE_EXCEEDED),
    ]);
  });

  it('come over as many connections as may be, and no more', async () => {
    const gateway = await harness.gateway({ maxConnections: 2 });
    const [, port] = (gateway.grpc?.address ?? '').split(':');
    const sockets = [0, 1, 2].map(() => connect(Number(port), '127.0.0.1'));
    harness.onRelease(() => {
      for (const socket of sockets) socket.destroy();
    });
    let closed = 0;
    for (const socket of sockets) socket.on('error', () => undefined).on('close', () => (closed += 1));
    await until('one is turned away', () => closed === 1);
    expect(await metric(gateway, /millrace_gateway_connections_refused_total (\d+)/)).to.equal(1);
    for (const socket of sockets) socket.destroy();
    const client = clientOf(gateway);
    await until('there is room again', () =>
      client.call('ServerLive', {}).then(
        () => true,
        () => false,
      ),
    );
  });
});

function callHeaders(): Record<string, string> {
  return { ':method': 'POST', ':path': INFER, 'content-type': 'application/grpc', te: 'trailers' };
}

/** A message as HTTP/2 carries it. */
function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

function bytesOf(call: InferCall): Buffer {
  return INFERENCE.ModelInfer?.requestSerialize(call) as Buffer;
}

function refuses(gateway: Gateway): Promise<boolean> {
  const [, port] = (gateway.grpc?.address ?? '').split(':');
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
}
