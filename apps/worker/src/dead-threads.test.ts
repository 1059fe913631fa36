import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { DataType, GraphBuilder } from '@millrace/onnx';
import { bytesTensor } from '@millrace/shared';
import { expect } from 'chai';
import { specOf } from './models/fetch/testing/model-folder.js';
import { indices, lookupModels, type TestModels, values } from './test-support/models.js';
import { uniqueName, until } from './test-support/redis.js';
import { TINY_TOKENIZER } from './test-support/tiny-tokenizer.js';
import { useWorkers } from './test-support/workers.js';

describe('a worker with a dead thread', () => {
  const workers = useWorkers();
  const threads: Worker[] = [];
  const remember = (thread: Worker): void => void threads.push(thread);
  beforeEach(() => {
    threads.splice(0);
    process.on('worker', remember);
  });
  afterEach(() => {
    process.off('worker', remember);
  });

  async function start(models: Omit<TestModels, 'remove'>) {
    const worker = await workers.worker(models);
    return { worker, ready: async () => (await fetch(`${worker.healthUrl}/health/ready`)).ok };
  }

  it('gives its work back at once when a session’s thread dies, and says that it must end', async () => {
    const models = await lookupModels({ closeEarly: 'never', windowMs: 60_000 });
    workers.after(() => models.remove());
    const gateway = await workers.gateway(models.name);
    const { worker, ready } = await start(models);
    const answer = gateway.predict(indices(3));
    await until(async () => (await gateway.queue.getActiveCount()) === 1);
    await threads.at(-1)?.terminate();
    expect(await worker.failed).to.have.property('hung', false);
    expect(await ready()).to.equal(false);
    expect(await gateway.queue.getActiveCount()).to.equal(0);
    expect(await gateway.queue.getPrioritizedCount()).to.equal(1);
    expect(await worker.drain()).to.equal('exit');
    const next = await start(models);
    await next.worker.drain();
    const { header, outputs } = await answer;
    expect(values(outputs)).to.deep.equal([40]);
    expect(header.attempt, 'given back, not lost').to.equal(1);
  });

  it('says so too when the thread that tokenizes died and its tokenizer is gone', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-models-'));
    workers.after(() => rm(folder, { recursive: true }));
    const models = { name: uniqueName('texts'), modelsDir: folder, cacheDir: join(folder, 'cache') };
    const tokenizer = Buffer.from(JSON.stringify(TINY_TOKENIZER));
    const tokenizerFile = join(models.cacheDir, models.name, '1', 'tokenizer.json');
    await mkdir(join(tokenizerFile, '..'), { recursive: true });
    await writeFile(tokenizerFile, tokenizer);
    await mkdir(join(folder, models.name));
    await writeFile(join(folder, models.name, 'mean.onnx'), meanOfIds());
    await writeFile(
      join(folder, models.name, 'model.yaml'),
      JSON.stringify({
        name: models.name,
        version: 1,
        task: 'text-embedding',
        files: { 'tokenizer.json': specOf(tokenizer) },
        build: { from: 'onnx', file: 'mean.onnx' },
        text: { tokenizer: 'tokenizer.json', maxTokens: 8 },
        embedding: { dimensions: 1 },
        session: { threads: 1 },
      }),
    );
    const gateway = await workers.gateway(models.name);
    const { worker, ready } = await start(models);
    await rm(tokenizerFile);
    await threads.at(0)?.terminate();
    // Too long to be tokenized in place.
    const answer = gateway.predict([bytesTensor('text', ['cat '.repeat(500)], [1])]);
    expect((await worker.failed).error.message).to.contain('ENOENT');
    expect(await ready()).to.equal(false);
    await worker.drain();
    await writeFile(tokenizerFile, tokenizer);
    await start(models);
    expect((await answer).header.items.map(({ status }) => status)).to.deep.equal(['ok']);
  });
});

/** An encoder whose embedding is the mean of the token ids. */
function meanOfIds(): Uint8Array {
  const graph = new GraphBuilder('mean');
  const ids = graph.input('input_ids', DataType.INT64, ['batch', 'length']);
  graph.input('attention_mask', DataType.INT64, ['batch', 'length']);
  const floats = graph.op('Cast', [ids], { to: DataType.FLOAT });
  graph.op('ReduceMean', [floats], { axes: [1], keepdims: 1 }, 'sentence_embedding');
  graph.output('sentence_embedding', DataType.FLOAT, ['batch', 1]);
  return graph.toBytes();
}
