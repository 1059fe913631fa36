import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { bytesTensor, type TextEmbeddingManifest } from '@millrace/shared';
import { expect } from 'chai';
import { TINY_TOKENIZER } from '../test-support/tiny-tokenizer.js';
import { prepareItems } from './prepare-items.js';
import { PreprocessPool } from './preprocess-pool.js';
import type { Prepared } from './task.js';
import { TextEmbedding } from './text-embedding.js';

const manifest = {
  name: 'm',
  version: '1',
  task: 'text-embedding',
  text: { tokenizer: 'tokenizer.json', maxTokens: 8, overflow: 'truncate' },
  embedding: { dimensions: 2, jsonDigits: 7 },
  limits: { maxRequestItems: 10 },
  build: { from: 'onnx', file: 'model.onnx' },
  batching: { maxItems: 32, maxCost: 4096 },
} as TextEmbeddingManifest;

describe('the text-embedding task', () => {
  const task = new TextEmbedding(manifest, 'tokenizer.json', { threads: 1 } as PreprocessPool);
  const prepared = (tokens: number[]): Prepared => ({
    size: tokens.length,
    shapeKey: '',
    truncated: false,
    value: Int32Array.from(tokens),
  });

  it('pads a group to its longest with id 0 and mask 0', () => {
    const [ids, mask] = task.assemble([prepared([7, 8, 9]), prepared([5])]);
    expect(ids?.shape).to.deep.equal([2, 3]);
    expect([...new BigInt64Array(ids?.data.buffer ?? new ArrayBuffer(0))]).to.deep.equal([
      7n,
      8n,
      9n,
      5n,
      0n,
      0n,
    ]);
    expect([...new BigInt64Array(mask?.data.buffer ?? new ArrayBuffer(0))]).to.deep.equal([
      1n,
      1n,
      1n,
      1n,
      0n,
      0n,
    ]);
  });

  it('gives each item its own row of the embedding', () => {
    const rows = Float32Array.from([1, 2, 3, 4]);
    const outputs = [
      { name: 'x', datatype: 'FP32' as const, shape: [2, 2], data: new Uint8Array(rows.buffer) },
    ];
    const [first, second] = task.split(outputs, 2);
    expect(first?.[0]?.name).to.equal('embedding');
    expect([...new Float32Array(new Uint8Array(second?.[0]?.data ?? []).buffer)]).to.deep.equal([3, 4]);
  });

  it('refuses outputs of another number of items', () => {
    const outputs = [{ name: 'x', datatype: 'FP32' as const, shape: [1, 2], data: new Uint8Array(8) }];
    expect(() => task.split(outputs, 2)).to.throw(/for 2 items/);
  });

  describe('with its tokenizer', () => {
    let folder: string;
    let pool: PreprocessPool;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'millrace-tokenizer-'));
      await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(TINY_TOKENIZER));
      pool = new PreprocessPool(1);
    });
    after(async () => {
      await pool.close();
      await rm(folder, { recursive: true });
    });

    const prepare = (overflow: 'truncate' | 'refuse', texts: (string | Uint8Array)[]) => {
      const text = { ...manifest.text, overflow };
      const task = new TextEmbedding({ ...manifest, text }, join(folder, 'tokenizer.json'), pool);
      return task.prepare(rawTexts(texts));
    };
    const parameter = async (overflow: 'truncate' | 'refuse', truncate: boolean) => {
      const text = { ...manifest.text, overflow };
      const task = new TextEmbedding({ ...manifest, text }, join(folder, 'tokenizer.json'), pool);
      const asked = rawTexts([LONG, 'the cat']).map((item) => ({ ...item, parameters: { truncate } }));
      return await task.prepare(asked);
    };
    const rawTexts = (texts: (string | Uint8Array)[]) =>
      texts.map((one) => ({
        inputs: new Map([
          ['text', { datatype: 'BYTES' as const, shape: [], data: bytesTensor('t', [one]).data }],
        ]),
      }));
    const LONG = 'the cat '.repeat(100_000);

    it('is asked again, one by one, when its thread died in the middle: all are prepared', async () => {
      let thread: Worker | undefined;
      const remember = (started: Worker): void => {
        thread = started;
      };
      process.on('worker', remember);
      const own = new PreprocessPool(1);
      const task = new TextEmbedding(manifest, join(folder, 'tokenizer.json'), own);
      await task.warm();
      process.off('worker', remember);
      const failures: Error[] = [];
      const preparing = prepareItems(task, rawTexts(Array(3000).fill('the cat')), (e) => failures.push(e));
      await thread?.terminate();
      const sizes = (await preparing).map((one) => 'size' in one && one.size);
      expect(failures).to.have.length(1);
      expect(new Set(sizes)).to.deep.equal(new Set([4]));
      await own.close();
    });

    it('cuts a text over the limit and says so', async () => {
      const [short, long] = await prepare('truncate', ['the cat', LONG]);
      expect(short).to.deep.include({ size: 4, tokens: 4, truncated: false });
      expect(long).to.deep.include({ size: 8, tokens: 8, truncated: true });
    });

    it('refuses a text over the limit where the manifest says so, and only that one', async () => {
      const [short, long, last] = await prepare('refuse', ['the cat', LONG, '']);
      expect(short).to.deep.include({ size: 4 });
      expect(long).to.deep.include({ code: 'text_too_long', message: 'The text has more than 8 tokens.' });
      expect(last).to.deep.include({ size: 2 });
    });

    it('cuts or refuses as the request says, whatever the manifest does', async () => {
      const [refused, short] = await parameter('truncate', false);
      expect(refused).to.deep.include({ code: 'text_too_long' });
      expect(short).to.deep.include({ size: 4 });
      const [cut] = await parameter('refuse', true);
      expect(cut).to.deep.include({ size: 8, truncated: true });
    });

    const rawTokens = (...tokens: number[]) => {
      const ids = new Uint8Array(Uint32Array.from(tokens).buffer);
      const { data } = bytesTensor('token_ids', [ids]);
      const inputs = new Map([['token_ids', { datatype: 'BYTES' as const, shape: [], data }]]);
      return { operation: 'embed-tokens' as const, inputs };
    };

    it('takes texts and token ids side by side', async () => {
      const task = new TextEmbedding(manifest, join(folder, 'tokenizer.json'), pool);
      const items = [...rawTexts(['the cat']), rawTokens(9, 6), ...rawTexts(['cat'])];
      const [text, tokens, last] = await task.prepare(items);
      expect(tokens).to.deep.equal(text);
      expect(last).to.deep.include({ size: 3 });
    });

    it('cuts or refuses token ids over the limit as it does texts', async () => {
      for (const [overflow, expected] of [
        ['truncate', { size: 8, truncated: true }],
        ['refuse', { code: 'text_too_long' }],
      ] as const) {
        const text = { ...manifest.text, overflow };
        const task = new TextEmbedding({ ...manifest, text }, join(folder, 'tokenizer.json'), pool);
        const [long] = await task.prepare([rawTokens(4, 5, 4, 5, 4, 5, 4)]);
        expect(long).to.deep.include(expected);
      }
    });

    it('refuses a text that is not UTF-8, and only that one', async () => {
      const [bad, good] = await prepare('truncate', [Uint8Array.of(0x63, 0xff), 'cat']);
      expect(bad).to.deep.include({ code: 'invalid_encoding' });
      expect(good).to.deep.include({ size: 3 });
    });
  });

  it('finds the fault of a single item without a tokenizer', async () => {
    const results = await task.prepare([
      { inputs: new Map() },
      { inputs: new Map([['text', { datatype: 'FP32' as const, shape: [], data: new Uint8Array(4) }]]) },
      { inputs: new Map([['text', { datatype: 'BYTES' as const, shape: [2], data: new Uint8Array(8) }]]) },
    ]);
    expect(results.map((result) => 'code' in result && result.code)).to.deep.equal(
      Array(3).fill('invalid_input'),
    );
  });
});
