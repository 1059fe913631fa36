import { bytesTensor } from '@millrace/shared';
import { expect } from 'chai';
import { TINY_TOKENIZER, tinyVocabulary } from '../test-support/tiny-tokenizer.js';
import type { RawItem } from './task.js';
import { prepareTokenIds } from './token-ids.js';
import { TextTokenizer } from './tokenizing.js';

const ids = (...tokens: string[]): number[] => tokens.map((token) => tinyVocabulary[token] ?? -1);

describe('an item of token ids', () => {
  const tokenizer = new TextTokenizer(TINY_TOKENIZER);
  const itemOf = (bytes: Uint8Array, shape: number[] = []): RawItem => ({
    operation: 'embed-tokens',
    inputs: new Map([
      ['token_ids', { datatype: 'BYTES', shape, data: bytesTensor('token_ids', [bytes]).data }],
    ]),
  });
  const prepare = (tokens: number[]) =>
    prepareTokenIds(itemOf(new Uint8Array(Uint32Array.from(tokens).buffer)), tokenizer, 6);

  it('is what its text would have become', () => {
    const expected = tokenizer.encode('the cats', 6).ids;
    const prepared = prepare(ids('the', 'cat', '##s'));
    expect(prepared).to.deep.equal({
      size: 5,
      shapeKey: '',
      truncated: false,
      tokens: 5,
      value: Int32Array.from(expected),
    });
  });

  it('is cut over the limit', () => {
    expect(prepare(ids('a', 'b', 'a', 'b', 'a'))).to.deep.include({ truncated: true, tokens: 6 });
  });

  it('is refused for an id outside the vocabulary, wherever it stands', () => {
    for (const id of [Object.keys(tinyVocabulary).length, 2 ** 31, 2 ** 32 - 1]) {
      expect(prepare([4, 4, 4, 4, 4, 4, 4, id])).to.deep.equal({
        code: 'invalid_input',
        message: `The vocabulary has no token of the id ${id}.`,
      });
    }
  });

  it('is refused when its bytes are no list of ids', () => {
    const none = { operation: 'embed-tokens' as const, inputs: new Map() };
    for (const item of [
      none,
      itemOf(new Uint8Array(0)),
      itemOf(new Uint8Array(6)),
      itemOf(new Uint8Array(4), [2]),
    ]) {
      expect(prepareTokenIds(item, tokenizer, 6)).to.include({ code: 'invalid_input' });
    }
  });
});
