import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bytesElements, bytesTensor } from '@millrace/shared';
import { expect } from 'chai';
import { TINY_TOKENIZER, tinyVocabulary } from '../test-support/tiny-tokenizer.js';
import { MOST_CHARACTERS, MOST_IDS } from './operate-task.js';
import { PreprocessPool } from './preprocess-pool.js';
import type { RawItem } from './task.js';
import { answerByTokenizer } from './text-operations.js';

describe('operations of the tokenizer', () => {
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

  async function answer(
    operation: 'tokenize' | 'detokenize',
    element: string | Uint8Array,
    parameters: RawItem['parameters'] = {},
  ): Promise<string> {
    const name = operation === 'tokenize' ? 'text' : 'token_ids';
    const inputs = new Map([
      [name, { datatype: 'BYTES' as const, shape: [], data: bytesTensor(name, [element]).data }],
    ]);
    const item = { operation, parameters, inputs };
    const result = await answerByTokenizer(item, operation, join(folder, 'tokenizer.json'), pool);
    if ('code' in result) return result.code;
    const [output] = result.outputs;
    expect(output).to.deep.include({ name: operation === 'tokenize' ? 'tokens' : 'text', datatype: 'BYTES' });
    const elements = bytesElements({
      name: '',
      datatype: 'BYTES',
      shape: [1],
      data: output?.data ?? new Uint8Array(),
    });
    return Buffer.from(elements[0] ?? []).toString();
  }
  const idsOf = (...ids: number[]): Uint8Array => new Uint8Array(Uint32Array.from(ids).buffer);
  const { the = 0, cat = 0 } = tinyVocabulary;

  it('answer a short text in place and a long one in a thread alike', async () => {
    for (const times of [1, 1000]) {
      const tokens = JSON.parse(await answer('tokenize', 'the cat '.repeat(times))) as { text: string }[];
      expect(tokens).to.have.length(2 * times + 2);
      expect(tokens.at(-2)).to.deep.include({ text: 'cat', stop: 8 * times - 1 });
    }
  });

  it('add or leave out special tokens as asked', async () => {
    const bare = await answer('tokenize', 'cat', { add_special_tokens: false });
    expect(JSON.parse(bare)).to.have.length(1);
    const ids = idsOf(2, the, cat, 3);
    expect(await answer('detokenize', ids)).to.equal('the cat');
    expect(await answer('detokenize', ids, { skip_special_tokens: false })).to.equal('[CLS] the cat [SEP]');
  });

  it('refuse what is too long, not text, or not in the vocabulary', async () => {
    expect(await answer('tokenize', 'a'.repeat(MOST_CHARACTERS + 1))).to.equal('text_too_long');
    expect(await answer('tokenize', Uint8Array.of(0xff))).to.equal('invalid_encoding');
    expect(await answer('detokenize', idsOf(...Array(MOST_IDS + 1).fill(cat)))).to.equal('text_too_long');
    expect(await answer('detokenize', idsOf(cat, 10))).to.equal('invalid_input');
    expect(await answer('detokenize', idsOf())).to.equal('invalid_input');
    expect(await answer('detokenize', Uint8Array.of(1, 0))).to.equal('invalid_input');
  });
});
