import { request as httpRequest } from 'node:http';
import { cancelKey, controlChannel, type Part, queueName } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../gateway.js';
import { Harness, post } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

describe('the path of a request', () => {
  const harness = new Harness();
  let redis: Redis;
  const predict = (gateway: Gateway, model: string, body: object, headers = {}) =>
    post(`${gateway.url}/v1/models/${model}/predict`, body, headers);
  /** A model that is announced and whose queue nobody takes from. */
  const announced = async (name: string): Promise<string> => {
    const worker = new StandInWorker(textModel(name));
    await worker.announce();
    harness.onRelease(() => worker.stop());
    return worker.queue;
  };

  before(() => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
  });
  after(() => harness.release());

  it('answers 504 at the deadline with the request id, and takes the work back', async () => {
    const model = uniqueName('late');
    const queue = await announced(model);
    const gateway = await harness.gateway();
    const { status, body, headers } = await predict(gateway, model, { inputs: ['a', 'b'], waitMs: 150 });
    expect(status).to.equal(504);
    expect(body).to.include({ code: 'deadline_exceeded', requestId: headers.get('x-request-id') });
    await until('the job is gone', async () => (await waitingJobs(redis, queue)) === 0);
    expect(await redis.pttl(cancelKey(queue, String(body.requestId)))).to.be.above(0);
  });

  it('waits as long as "Prefer: wait" says, within the limit', async () => {
    const model = uniqueName('prefer');
    await announced(model);
    const gateway = await harness.gateway({ maxWaitMs: 300 });
    expect((await predict(gateway, model, { inputs: 'a' }, { prefer: 'wait=1' })).status).to.equal(504);
    expect((await predict(gateway, model, { inputs: 'a', waitMs: 3_600_000 })).status).to.equal(504);
  });

  it('takes the waiting work of a client that goes away back, and tells the workers', async () => {
    const model = uniqueName('gone');
    const queue = await announced(model);
    const gateway = await harness.gateway();
    const subscriber = testRedis('subscriber');
    harness.onRelease(() => subscriber.disconnect());
    const told: string[] = [];
    await subscriber.subscribe(controlChannel(queue));
    subscriber.on('message', (_channel, message) => told.push(message));
    const request = httpRequest(`${gateway.url}/v1/models/${model}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', () => undefined);
    request.end(JSON.stringify({ inputs: 'z'.repeat(10_000) }));
    await until('the job waits', async () => (await waitingJobs(redis, queue)) === 1);
    request.destroy();
    await until('the job is gone', async () => (await waitingJobs(redis, queue)) === 0);
    await until('the workers are told', () => told.length === 1);
    expect(await redis.exists(cancelKey(queue, told[0] ?? ''))).to.equal(1);
    const payloads = (): Promise<string[]> => redis.keys(`mr-payload:${queue.replace('{', '\\{')}*`);
    await until('the payload is gone', async () => (await payloads()).length === 0);
    await until('it is counted', async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return metrics.includes(`millrace_clients_gone_total{model="${model}"} 1`);
    });
  });

  it('refuses with 429 when the queue holds all it may', async () => {
    const model = uniqueName('full');
    const queue = await announced(model);
    const gateway = await harness.gateway({ maxQueuedItems: 5 });
    const waiting = predict(gateway, model, { inputs: ['a', 'b', 'c', 'd'], waitMs: 2000 });
    await until('they wait', async () => (await waitingJobs(redis, queue)) === 1);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).to.include(`millrace_queue_jobs{queue="${queue}",state="waiting"} 1`);
    expect(metrics).to.match(new RegExp(`millrace_queue_oldest_seconds{queue="${queue}"} 0\\.\\d+`));
    expect(metrics).to.include('millrace_gateway_waiting_requests 1');
    const { status, headers, body } = await predict(gateway, model, { inputs: ['e', 'f'] });
    expect(status).to.equal(429);
    expect(body.code).to.equal('queue_full');
    expect(Number(headers.get('retry-after'))).to.be.at.least(1);
    expect(await waitingJobs(redis, queue)).to.equal(1);
    expect((await waiting).status).to.equal(504);
  });

  it('refuses with 429 when more bytes wait than may', async () => {
    const model = uniqueName('heavy');
    await announced(model);
    const gateway = await harness.gateway({ maxQueuedBytes: 1024 });
    const { status, body } = await predict(gateway, model, { inputs: 'x'.repeat(2000) });
    expect(status).to.equal(429);
    expect(body.code).to.equal('queue_full');
  });

  it('tells a configured model without a worker from an unknown one', async () => {
    const configured = uniqueName('configured');
    const known = uniqueName('known');
    await announced(known);
    const gateway = await harness.gateway({ models: [configured] });
    const missing = await predict(gateway, configured, { inputs: 'a' });
    expect(missing.status).to.equal(503);
    expect(missing.body.code).to.equal('no_worker');
    expect(missing.headers.get('retry-after')).to.match(/^\d+$/);
    const unknown = await predict(gateway, 'nope', { inputs: 'a' });
    expect(unknown.status).to.equal(404);
    expect(unknown.body.detail).to.include(known);
    const version = await post(`${gateway.url}/v1/models/${known}/versions/9/predict`, { inputs: 'a' });
    expect(version.status).to.equal(404);
    expect(version.body.detail).to.include('There are: 1.');
    expect(version.body.field).to.equal('version');
  });

  it('refuses at once with 503 and a reason while no worker serves a model it knows', async () => {
    const model = uniqueName('away');
    const first = await new StandInWorker(textModel(model)).start();
    const gateway = await harness.gateway({ models: [model] });
    await first.stop();
    const ready = async (): Promise<number> => (await fetch(`${gateway.url}/v2/health/ready`)).status;
    await until('readiness fails', async () => (await ready()) === 503);
    const refused = await predict(gateway, model, { inputs: 'a' });
    expect(refused.status).to.equal(503);
    expect(refused.body.code).to.equal('no_worker');
    expect(Number(refused.headers.get('retry-after'))).to.be.at.least(1);
    expect(await waitingJobs(redis, queueName(model, '1'))).to.equal(0);
    await harness.worker(textModel(model));
    await until('a worker is seen again', async () => (await ready()) === 200);
    expect((await predict(gateway, model, { inputs: 'a' })).status).to.equal(200);
  });

  it('takes the highest version when none is named', async () => {
    const model = uniqueName('versions');
    for (const version of ['2', '10', '9']) await harness.worker(textModel(model, { version }));
    const gateway = await harness.gateway();
    expect((await predict(gateway, model, { inputs: 'a' })).body.version).to.equal('10');
  });

  it('passes on deadline, tenant, parameters and trace context', async () => {
    const model = uniqueName('part');
    const parts: Part[] = [];
    await harness.worker(textModel(model), { before: (part) => void parts.push(part) });
    const gateway = await harness.gateway();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const parameters = { mode: 'x', level: 2, on: true };
    await predict(gateway, model, { inputs: 'a', waitMs: 5000, parameters }, { traceparent });
    expect(parts[0]).to.deep.include({
      traceparent,
      parameters,
      tenant: 'anonymous',
      onDisconnect: 'cancel',
    });
    expect((parts[0]?.deadlineAt ?? 0) - (parts[0]?.stamps.received ?? 0)).to.be.closeTo(5000, 0.01);
  });

  it('answers 500 by name to a reply of another contract version', async () => {
    const model = uniqueName('contract');
    await harness.worker(textModel(model), {
      alter: (reply) => ({ ...reply, header: { ...reply.header, v: 99 } }),
    });
    const gateway = await harness.gateway();
    const { status, body } = await predict(gateway, model, { inputs: 'a' });
    expect(status).to.equal(500);
    expect(body.code).to.equal('contract_version_unsupported');
  });

  it('unlinks the replies it received', async () => {
    const model = uniqueName('unlink');
    await harness.worker(textModel(model));
    const gateway = await harness.gateway();
    await Promise.all(Array.from({ length: 10 }, () => predict(gateway, model, { inputs: 'a' })));
    const keys = (): Promise<string[]> => redis.keys(`mr-reply:*${model}*`);
    await until('they are gone', async () => (await keys()).length === 0);
  });

  it('shows metrics by model, door, status and stage, and no invented names', async () => {
    const model = uniqueName('metrics');
    await harness.worker(textModel(model));
    const gateway = await harness.gateway();
    await predict(gateway, model, { inputs: 'a' });
    await predict(gateway, 'invented', { inputs: 'a' });
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(text).to.include(`millrace_requests_total{model="${model}",door="native",status="200"} 1`);
    expect(text).to.include('millrace_requests_total{model="",door="native",status="404"} 1');
    expect(text).to.include(`millrace_stage_duration_seconds_count{model="${model}",stage="queue"} 1`);
    expect(text).to.include(`millrace_queue_jobs{queue="{${model}@1}",state="waiting"} 0`);
    expect(text).to.include(`millrace_queue_oldest_seconds{queue="{${model}@1}"} 0`);
    expect(text).to.include(`millrace_workers_alive{model="${model}"} 1`);
    expect(text).not.to.include('invented');
  });
});
