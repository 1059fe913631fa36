import { randomUUID } from 'node:crypto';
import {
  BULL_PREFIX,
  cancelKey,
  encodeFrame,
  jobId,
  markerKey,
  payloadKey,
  REGISTRY_EXPIRY_KEY,
  readRegistry,
  replyKey,
} from '@millrace/shared';
import { Worker } from 'bullmq';
import { expect } from 'chai';
import type { TestGateway } from './test-support/gateway.js';
import { indices, lookupModels, values } from './test-support/models.js';
import { until } from './test-support/redis.js';
import { useWorkers } from './test-support/workers.js';

describe('a worker', () => {
  const workers = useWorkers();

  async function model(batching: object = {}) {
    const models = await lookupModels(batching);
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    return { gateway, connection: gateway.redis, start: () => workers.worker(models) };
  }

  /** Fetches the only waiting job as a worker that then vanishes. */
  async function loseJob(gateway: TestGateway): Promise<void> {
    const connection = await workers.connect();
    const lost = new Worker(gateway.queueName, null, {
      connection,
      prefix: BULL_PREFIX,
      lockDuration: 1000,
      drainDelay: 1,
    });
    await until(async () => (await lost.getNextJob(randomUUID())) !== undefined);
    await lost.close(true);
  }

  it('answers each item of a part in order, with its stamps, and completes the job', async () => {
    const { gateway, connection, start } = await model();
    await start();
    const { header, outputs } = await gateway.predict(indices(3, 0, 2));
    expect(values(outputs)).to.deep.equal([40, 10, 30]);
    expect(header.items.map(({ status }) => status)).to.deep.equal(['ok', 'ok', 'ok']);
    const times = ['fetched', 'preprocessed', 'batched', 'inferred', 'postprocessed', 'replied'] as const;
    const stamps = times.map((stage) => header.stamps[stage] ?? Number.NaN);
    expect([...stamps].sort((a, b) => a - b)).to.deep.equal(stamps);
    await until(async () => (await gateway.queue.getCompletedCount()) === 1);
    expect(await connection.exists(replyKey(gateway.queueName, header.requestId, 0))).to.equal(1);
  });

  it('lets an item that the model fails on fail alone, its batch mates unharmed', async () => {
    // Only the window's end closes the batch, so that all of these run together at first.
    const { gateway, start } = await model({ closeEarly: 'never', windowMs: 100 });
    const sent = [1, 99, 2, 3, -77, 0].map((index) => gateway.predict(indices(index)));
    await start();
    const replies = await Promise.all(sent);
    expect(replies.map(({ outputs }) => values(outputs)[0])).to.deep.equal([
      20,
      undefined,
      30,
      40,
      undefined,
      10,
    ]);
    const codes = replies.map(({ header: { items } }) => items[0]?.status === 'failed' && items[0].code);
    expect(codes).to.deep.equal([false, 'inference_failed', false, false, 'inference_failed', false]);
  });

  it('answers the good items of a part with a bad one', async () => {
    const { gateway, start } = await model();
    await start();
    const { header, outputs } = await gateway.predict(indices(1, 99, 2));
    expect(header.items.map(({ status }) => status)).to.deep.equal(['ok', 'failed', 'ok']);
    expect(values(outputs)).to.deep.equal([20, 30]);
    await until(async () => (await gateway.queue.getFailedCount()) === 1);
  });

  it('refuses an input of a wrong shape or datatype as that item’s fault', async () => {
    const { gateway, start } = await model();
    await start();
    const [tensor] = indices(1, 2);
    if (!tensor) throw new Error('no tensor');
    const faults = [
      [{ ...tensor, shape: [1, 2] }],
      [{ ...tensor, datatype: 'FP64' as const }],
      [{ ...tensor, name: 'other' }],
    ];
    for (const inputs of faults) {
      const { header } = await gateway.predict(inputs);
      expect(header.items[0]).to.deep.include({ status: 'failed', code: 'invalid_input' });
    }
  });

  it('answers a job of another contract version, or one that makes no sense, with a named error', async () => {
    const { gateway, start } = await model();
    await start();
    const sound = gateway.job(indices(1));
    const part = sound.parts[0];
    const id = () => randomUUID();
    const nothing = encodeFrame({}, []).toString('base64');
    const faulty: [string, string, object][] = [
      [id(), 'contract_version_unsupported', { ...sound, v: 99 }],
      [id(), 'invalid_input', { ...sound, model: 'other' }],
      [id(), 'invalid_input', { ...sound, parts: [{ ...part, payload: { inline: 'AAAA' } }] }],
      [id(), 'invalid_input', { ...sound, parts: [{ ...part, count: 7 }] }],
      [
        id(),
        'invalid_input',
        { ...sound, parts: [{ ...part, payload: { key: 'mr-payload:none', bytes: 1 } }] },
      ],
      [id(), 'invalid_input', { ...sound, parts: [{ ...part, payload: { inline: nothing } }] }],
    ];
    for (const [requestId, code, data] of faulty) {
      const parts = (data as typeof sound).parts.map((one) => ({ ...one, requestId }));
      const { header } = await gateway.send({ ...data, parts }, requestId);
      expect(header.items[0], code).to.deep.include({ status: 'failed', code });
    }
  });

  it('answers those fetched beside a job whose data is no JSON, and fails that one alone', async () => {
    const { gateway, connection, start } = await model();
    const broken = await gateway.queue.add('infer', {}, { jobId: randomUUID(), priority: 10 });
    await connection.hset(gateway.queue.toKey(broken.id ?? ''), 'data', '{not json');
    const beside = Array.from({ length: 12 }, (_, i) => gateway.predict(indices(i % 4)));
    await start();
    const answers = (await Promise.all(beside)).map(({ outputs }) => values(outputs)[0]);
    expect(answers).to.deep.equal(Array.from({ length: 12 }, (_, i) => ((i % 4) + 1) * 10));
    await until(async () => (await gateway.queue.getFailedCount()) === 1);
    await until(async () => (await gateway.queue.getActiveCount()) === 0);
  });

  it('fails a job that claims more items than any gateway sends, without making room for them', async () => {
    const { gateway, start } = await model();
    await start();
    const job = gateway.job(indices(1), { count: 2 ** 31 });
    await gateway.queue.add('infer', job, { jobId: randomUUID(), priority: 10 });
    await until(async () => (await gateway.queue.getFailedCount()) === 1);
    expect(values((await gateway.predict(indices(2))).outputs)).to.deep.equal([30]);
  });

  it('says that a part’s payload is gone', async () => {
    const { gateway, start } = await model();
    await start();
    const requestId = randomUUID();
    const key = payloadKey(gateway.queueName, requestId, 0);
    const { header } = await gateway.predict(indices(1), { requestId, payload: { key, bytes: 100 } });
    expect(header.items[0]).to.deep.include({ status: 'failed', code: 'internal' });
  });

  it('answers the other parts of a job with a part whose payload is gone', async () => {
    const { gateway, start } = await model();
    const [given, waiting] = [randomUUID(), randomUUID()];
    const key = payloadKey(gateway.queueName, given, 0);
    const parts = [
      ...gateway.job(indices(1), { requestId: given, payload: { key, bytes: 100 } }).parts,
      ...gateway.job(indices(2), { requestId: waiting }).parts,
    ];
    const reply = gateway.send({ ...gateway.job(indices(0)), parts }, waiting);
    await start();
    expect(values((await reply).outputs)).to.deep.equal([30]);
    await until(async () => (await gateway.queue.getActiveCount()) === 0);
  });

  it('fetches again after Redis refused to hand out jobs, and is not ready while it does', async () => {
    const { gateway, connection, start } = await model();
    const worker = await start();
    await gateway.predict(indices(0));
    await connection.config('SET', 'maxmemory', '1mb');
    const ready = async (): Promise<boolean> => (await fetch(`${worker.healthUrl}/health/ready`)).ok;
    const waiting = gateway.redis.zcard(gateway.queue.toKey('prioritized'));
    expect(await waiting).to.equal(0);
    await until(async () => !(await ready()));
    await connection.config('SET', 'maxmemory', '0');
    await until(ready);
    expect(values((await gateway.predict(indices(2))).outputs)).to.deep.equal([30]);
  });

  it('keeps no input of a client’s own fault', async () => {
    const { gateway, connection, start } = await model();
    await start();
    const requestId = randomUUID();
    const key = payloadKey(gateway.queueName, requestId, 0);
    const [tensor] = indices(1, 2);
    const frame = encodeFrame({}, tensor ? [{ ...tensor, shape: [1, 2] }] : []);
    await connection.set(key, frame);
    const { header } = await gateway.predict(indices(1), {
      requestId,
      count: 1,
      payload: { key, bytes: frame.length },
    });
    expect(header.items[0]).to.deep.include({ status: 'failed', code: 'invalid_input' });
    await until(async () => (await gateway.queue.getFailedCount()) === 1);
    await until(async () => (await connection.exists(key)) === 0);
  });

  it('runs again what an administrator retries, however old it is, and that reply replaces the first', async () => {
    const { gateway, connection, start } = await model();
    await start();
    const data = gateway.job(indices(99), { deadlineAt: Date.now() + 500 });
    const requestId = data.parts[0]?.requestId ?? '';
    const first = await gateway.send(data, requestId);
    expect(first.header).to.include({ generation: 0 });
    const id = jobId(requestId, 0);
    await until(async () => (await gateway.queue.getJobState(id)) === 'failed');
    await until(() => Date.now() > (data.parts[0]?.deadlineAt ?? 0));
    const again = gateway.expect(requestId);
    await (await gateway.queue.getJob(id))?.retry('failed');
    const { header } = await again;
    expect(header).to.include({ generation: 1 });
    expect(header.items).to.deep.equal(first.header.items);
    const stored = await connection.getBuffer(replyKey(gateway.queueName, requestId, 0));
    expect(stored?.readUInt32LE(0)).to.equal(1);
  });

  it('reads a large input from its side key and removes that key', async () => {
    const { gateway, connection, start } = await model();
    await start();
    const indexes = Array.from({ length: 32 }, (_, i) => i % 4);
    const requestId = randomUUID();
    const key = payloadKey(gateway.queueName, requestId, 0);
    const frame = encodeFrame({}, indices(...indexes));
    await connection.set(key, frame);
    const { outputs } = await gateway.predict(indices(...indexes), {
      requestId,
      payload: { key, bytes: frame.length },
    });
    expect(values(outputs)).to.deep.equal(indexes.map((i) => (i + 1) * 10));
    await until(async () => (await connection.exists(key)) === 0);
  });

  it('starts nothing past its deadline', async () => {
    const { gateway, start } = await model();
    await start();
    const { header, outputs } = await gateway.predict(indices(1), { deadlineAt: Date.now() - 1000 });
    expect(header.items).to.deep.equal([{ status: 'expired' }]);
    expect(header.stamps.inferred).to.equal(undefined);
    expect(outputs).to.deep.equal([]);
  });

  it('drops cancelled items that wait for their batch', async () => {
    const { gateway, start } = await model({ closeEarly: 'never', windowMs: 10_000 });
    await start();
    const requestId = randomUUID();
    const cancelled = gateway.predict(indices(1), { requestId });
    await until(async () => (await gateway.queue.getActiveCount()) === 1);
    await gateway.cancel(requestId);
    const { header } = await cancelled;
    expect(header.items).to.deep.equal([{ status: 'cancelled' }]);
    expect(header.stamps.inferred).to.equal(undefined);
  });

  it('drops what was cancelled while it could not hear of it', async () => {
    const { gateway, connection, start } = await model({ closeEarly: 'never', windowMs: 10_000 });
    const worker = await start();
    const requestId = randomUUID();
    const cancelled = gateway.predict(indices(1), { requestId });
    await until(async () => (await gateway.queue.getActiveCount()) === 1);
    // The message that tells of it is lost; its tombstone stands when the connection is back.
    await connection.set(cancelKey(gateway.queueName, requestId), '1', 'PX', 20_000);
    const list = String(await connection.client('LIST'));
    const name = `name=millrace-worker-${worker.id}-control`;
    const id = /id=(\d+)/.exec(list.split('\n').find((line) => line.includes(name)) ?? '')?.[1];
    await connection.client('KILL', 'ID', id ?? '');
    const { header } = await cancelled;
    expect(header.items).to.deep.equal([{ status: 'cancelled' }]);
  });

  it('finishes what it holds when it drains, and gives no new job a start', async () => {
    const { gateway, connection, start } = await model({ closeEarly: 'never', windowMs: 60_000 });
    const worker = await start();
    const held = gateway.predict(indices(2));
    await until(async () => (await gateway.queue.getActiveCount()) === 1);
    await worker.drain();
    expect(values((await held).outputs)).to.deep.equal([30]);
    void gateway.predict(indices(1));
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
    const announced = await readRegistry(connection, Date.now());
    expect(announced.some(({ id }) => id === worker.id)).to.equal(false);
  });

  it('stops at once while it waits for jobs, and takes none meanwhile', async () => {
    const { gateway, start } = await model();
    const worker = await start();
    await gateway.predict(indices(0));
    const stops: number[] = [];
    for (let i = 0; i < 3; i++) {
      const next = i === 0 ? worker : await start();
      // Into its blocking fetch, which lasts a second.
      await new Promise((resolve) => setTimeout(resolve, 100));
      const began = performance.now();
      expect(await next.drain()).to.equal('exit');
      stops.push(performance.now() - began);
    }
    // A blocking fetch of a second would have been waited out in at least one of them.
    expect(Math.min(...stops)).to.be.below(500);
    void gateway.predict(indices(1));
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
  });

  it('takes over a job whose worker vanished, and says that it was a second attempt', async () => {
    const { gateway, start } = await model();
    const answer = gateway.predict(indices(3));
    await loseJob(gateway);
    await start();
    const { header, outputs } = await answer;
    expect(values(outputs)).to.deep.equal([40]);
    expect(header.attempt).to.be.at.least(2);
  });

  it('completes a lost job unrun when its reply is stored already', async () => {
    const { gateway, connection, start } = await model();
    const requestId = randomUUID();
    void gateway.predict(indices(3), { requestId });
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
    await loseJob(gateway);
    await connection.set(replyKey(gateway.queueName, requestId, 0), 'somebody answered', 'PX', 20_000);
    await start();
    await until(async () => (await gateway.queue.getCompletedCount()) === 1);
    expect(await connection.get(replyKey(gateway.queueName, requestId, 0))).to.equal('somebody answered');
  });

  it('runs only the unanswered parts of a lost job that carried several', async () => {
    const { gateway, connection, start } = await model();
    const [answered, waiting] = [randomUUID(), randomUUID()];
    const parts = [answered, waiting].flatMap((requestId, i) => gateway.job(indices(i), { requestId }).parts);
    const reply = gateway.send({ ...gateway.job(indices(0)), parts }, waiting);
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
    await loseJob(gateway);
    await connection.set(replyKey(gateway.queueName, answered, 0), 'somebody answered', 'PX', 20_000);
    await start();
    expect(values((await reply).outputs)).to.deep.equal([20]);
    await until(async () => (await gateway.queue.getCompletedCount()) === 1);
    expect(await connection.get(replyKey(gateway.queueName, answered, 0))).to.equal('somebody answered');
  });

  it('gives up an item that two dead workers were running alone, and answers its siblings', async () => {
    const { gateway, connection, start } = await model();
    const requestId = randomUUID();
    const answer = gateway.predict(indices(1, 2, 3), { requestId });
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
    await loseJob(gateway);
    const key = markerKey(gateway.queueName, jobId(requestId, 0));
    await connection.hset(key, { '1:0:dead-worker-a': 1, '1:0:dead-worker-b': 2, '0:0:dead-worker-a': 1 });
    await start();
    const { header, outputs } = await answer;
    expect(header.items.map((item) => (item.status === 'failed' ? item.code : item.status))).to.deep.equal([
      'ok',
      'item_quarantined',
      'ok',
    ]);
    expect(values(outputs)).to.deep.equal([20, 40]);
  });

  it('counts no death for a worker that lives, nor for an earlier generation', async () => {
    const { gateway, connection, start } = await model();
    const requestId = randomUUID();
    const answer = gateway.predict(indices(1, 2), { requestId, generation: 1 });
    await until(async () => (await gateway.queue.getPrioritizedCount()) === 1);
    await loseJob(gateway);
    const alive = `alive-${requestId}`;
    await connection.zadd(REGISTRY_EXPIRY_KEY, Date.now() + 60_000, alive);
    const key = markerKey(gateway.queueName, jobId(requestId, 0));
    await connection.hset(key, {
      [`0:1:${alive}`]: 1,
      '0:1:dead-worker-a': 1,
      '1:0:dead-worker-a': 1,
      '1:0:dead-worker-b': 1,
    });
    await start();
    expect(values((await answer).outputs)).to.deep.equal([20, 30]);
    await connection.zrem(REGISTRY_EXPIRY_KEY, alive);
  });
});
