import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { Harness, post } from './test-support/harness.js';
import { textModel } from './test-support/models.js';
import { testRedis, uniqueName, until, waitingJobs } from './test-support/redis.js';
import { StandInWorker } from './test-support/stand-in-worker.js';

async function refusal(start: Promise<unknown>): Promise<StartupError> {
  try {
    await start;
  } catch (error) {
    if (error instanceof StartupError) return error;
    throw error;
  }
  throw new Error('It started.');
}

describe('a gateway', () => {
  let harness: Harness;
  let redis: Redis;

  beforeEach(() => {
    harness = new Harness();
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
  });
  afterEach(() => harness.release());

  it('refuses a public address without API keys, unless forced', async () => {
    const error = await refusal(harness.gateway({ host: '0.0.0.0' }));
    expect(error.message).to.include('0.0.0.0');
    expect(error.nextStep).to.include('MILLRACE_API_KEYS');
    const forced = await harness.gateway({ host: '0.0.0.0', allowPublic: true });
    expect((await fetch(`${forced.url}/v2/health/live`)).status).to.equal(200);
  });

  it('says that a port is taken, and what to do', async () => {
    const { port } = await harness.gateway();
    const error = await refusal(harness.gateway({ port }));
    expect(error.message).to.equal(`Port ${port} on 127.0.0.1 is already in use.`);
    expect(error.nextStep).to.include('--port');
  });

  it('says that Redis does not answer', async () => {
    const error = await refusal(harness.gateway({ redisUrl: 'redis://127.0.0.1:1' }));
    expect(error.message).to.include('127.0.0.1:1');
  });

  it('answers those who wait before it goes, and turns connections away', async () => {
    const model = uniqueName('drain');
    const worker = new StandInWorker(textModel(model));
    await worker.announce();
    harness.onRelease(() => worker.stop());
    const gateway = await harness.gateway({ graceMs: 10_000 });
    const agent = new Agent({ keepAlive: true });
    harness.onRelease(() => agent.destroy());
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      const request = httpRequest(
        `${gateway.url}/v1/models/${model}/predict`,
        { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
        (response) => resolve(response.resume()),
      );
      request.on('error', reject);
      request.end(JSON.stringify({ inputs: 'a' }));
    });
    await until('the job waits', async () => (await waitingJobs(redis, worker.queue)) === 1);
    const closed = gateway.close();
    const ready = await fetch(`${gateway.url}/v2/health/ready`);
    expect(ready.status).to.equal(503);
    expect(ready.headers.get('connection')).to.equal('close');
    await until('new connections are refused', async () =>
      fetch(`${gateway.url}/v2/health/live`).then(
        () => false,
        () => true,
      ),
    );
    await harness.worker(textModel(model));
    const { statusCode, headers } = await answer;
    expect(statusCode).to.equal(200);
    expect(headers.connection).to.equal('close');
    await closed;
  });

  it('still answers on a kept connection after it stopped listening, and tells its client to leave', async () => {
    const gateway = await harness.gateway({ graceMs: 10_000 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    harness.onRelease(() => agent.destroy());
    const live = () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const request = httpRequest(`${gateway.url}/v2/health/live`, { agent }, (response) => {
          response.resume().on('end', () => resolve(response));
        });
        request.on('error', reject);
        request.end();
      });
    expect((await live()).headers.connection).to.equal('keep-alive');
    const closed = gateway.close();
    await until('new connections are refused', async () =>
      fetch(`${gateway.url}/v2/health/live`).then(
        () => false,
        () => true,
      ),
    );
    const last = await live();
    expect(last.statusCode).to.equal(200);
    expect(last.headers.connection).to.equal('close');
    await closed;
  });

  it('tells those it can wait for no longer, and takes their work back', async () => {
    const model = uniqueName('grace');
    const worker = new StandInWorker(textModel(model));
    await worker.announce();
    harness.onRelease(() => worker.stop());
    const gateway = await harness.gateway({ graceMs: 300 });
    const answer = post(`${gateway.url}/v1/models/${model}/predict`, { inputs: 'a' });
    await until('the job waits', async () => (await waitingJobs(redis, worker.queue)) === 1);
    await gateway.close();
    const { status, body } = await answer;
    expect(status).to.equal(503);
    expect(body.code).to.equal('shutting_down');
    await until('the job is gone', async () => (await waitingJobs(redis, worker.queue)) === 0);
  });
});
