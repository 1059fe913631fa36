import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { TINY_TOKENIZER } from '../test-support/tiny-tokenizer.js';
import { PreprocessPool } from './preprocess-pool.js';

describe('the threads that prepare inputs', () => {
  const threads: Worker[] = [];
  const remember = (thread: Worker): void => void threads.push(thread);
  let folder: string;
  let file: string;
  let pool: PreprocessPool;

  beforeEach(async () => {
    process.on('worker', remember);
    threads.splice(0);
    folder = await mkdtemp(join(tmpdir(), 'millrace-tokenizer-'));
    file = join(folder, 'tokenizer.json');
    await writeFile(file, JSON.stringify(TINY_TOKENIZER));
    pool = new PreprocessPool(1);
    await pool.warm(file);
  });
  afterEach(async () => {
    process.off('worker', remember);
    await pool.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Too many texts to be tokenized in place. */
  function tokenize(texts = 1000): Promise<Int32Array> {
    const bytes = new TextEncoder().encode('cat '.repeat(texts));
    const ends = Uint32Array.from({ length: texts }, (_, i) => 4 * (i + 1));
    return pool.tokenize({ tokenizerFile: file, maxTokens: 4, bytes, ends });
  }
  const numbersOf = (texts: number): number => texts * (2 + 3);

  it('are replaced when they die', async () => {
    await threads.at(-1)?.terminate();
    expect(await tokenize()).to.have.length(numbersOf(1000));
    expect(threads).to.have.length(2);
  });

  it('reject what they were at when they die, and go on with the next', async () => {
    const lost = tokenize(1_000_000).catch((error: Error) => error.message);
    // It has begun.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const killed = threads.at(-1)?.terminate();
    expect(await lost).to.match(/exited|terminat/);
    await killed;
    expect(await tokenize()).to.have.length(numbersOf(1000));
  });

  it('may take as long as they need to start, whatever a task may take', async () => {
    const strict = new PreprocessPool(1, 0);
    const warmed = strict.warm(file);
    // As on a busy machine: the check for what hangs comes before anything of the new thread.
    const busyUntil = performance.now() + 1200;
    while (performance.now() < busyUntil);
    await warmed;
    await strict.close();
  });

  it('have failed for good when a new one cannot load the tokenizer', async () => {
    await rm(file);
    await threads.at(-1)?.terminate();
    const refused = await tokenize().catch((error: Error) => error.message);
    expect(refused).to.contain('ENOENT');
    await pool.warm(file).catch(() => undefined);
    expect((await pool.failed).message).to.contain('ENOENT');
  });
});
