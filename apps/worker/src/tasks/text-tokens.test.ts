import { expect } from 'chai';
import { TINY_TOKENIZER, tinyVocabulary } from '../test-support/tiny-tokenizer.js';
import { TextTokenizer } from './tokenizing.js';

describe('the tokens of a text', () => {
  const tokenizer = new TextTokenizer(TINY_TOKENIZER);
  const placed = (text: string) =>
    tokenizer.tokenize(text, false).map((token) => [token.text, token.start, token.stop]);

  it('have their ids, and stand between the special ones, which have no place', () => {
    expect(tokenizer.tokenize('the cats', true)).to.deep.equal([
      { id: tinyVocabulary['[CLS]'], text: '[CLS]', special: true, start: null, stop: null },
      { id: tinyVocabulary.the, text: 'the', special: false, start: 0, stop: 3 },
      { id: tinyVocabulary.cat, text: 'cat', special: false, start: 4, stop: 7 },
      { id: tinyVocabulary['##s'], text: 's', special: false, start: 7, stop: 8 },
      { id: tinyVocabulary['[SEP]'], text: '[SEP]', special: true, start: null, stop: null },
    ]);
    expect(tokenizer.tokenize('the cats', false)).to.have.length(3);
  });

  it('are shown as the text has them, and counted in characters', () => {
    expect(placed('THÉ\t 🙂🙂 càts, dog')).to.deep.equal([
      ['THÉ', 0, 3],
      ['🙂🙂', 5, 7],
      ['càt', 8, 11],
      ['s', 11, 12],
      [',', 12, 13],
      ['dog', 14, 17],
    ]);
  });

  it('reach over marks in the middle of a word that the vocabulary leaves out', () => {
    expect(placed('ca\u0301t the')).to.deep.equal([
      ['ca\u0301t', 0, 4],
      ['the', 5, 8],
    ]);
  });

  it('are no special ones where the text is written like them', () => {
    expect(tokenizer.tokenize('a[SEP] zzz [UNK]', false)).to.deep.equal([
      { id: tinyVocabulary.a, text: 'a', special: false, start: 0, stop: 1 },
      { id: tinyVocabulary['[SEP]'], text: '[SEP]', special: false, start: 1, stop: 6 },
      { id: tinyVocabulary['[UNK]'], text: 'zzz', special: false, start: 7, stop: 10 },
      { id: tinyVocabulary['[UNK]'], text: '[UNK]', special: false, start: 11, stop: 16 },
    ]);
  });

  it('have no place where the tokenizer is of another kind than WordPiece', () => {
    const other = new TextTokenizer({
      ...TINY_TOKENIZER,
      added_tokens: [],
      post_processor: null,
      pre_tokenizer: null,
      model: { type: 'BPE', unk_token: 'a', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] },
    });
    expect(other.tokenize('aba', true)).to.deep.equal([
      { id: 2, text: 'ab', special: false, start: null, stop: null },
      { id: 0, text: 'a', special: false, start: null, stop: null },
    ]);
  });

  it('have no place where a normalizer joins characters', () => {
    const composing = new TextTokenizer({ ...TINY_TOKENIZER, normalizer: { type: 'NFC' } });
    expect(composing.tokenize('e\u0301', false).map(({ start }) => start)).to.deep.equal([null]);
    expect(composing.tokenize('cat', false).map(({ start }) => start)).to.deep.equal([0]);
  });

  it('make a text again, with the special ones or without', () => {
    const ids = ['[CLS]', 'the', 'cat', '##s', '[SEP]'].map((token) => tinyVocabulary[token] ?? -1);
    expect(tokenizer.detokenize(ids, true)).to.equal('the cats');
    expect(tokenizer.detokenize(ids, false)).to.equal('[CLS] the cats [SEP]');
    expect(tokenizer.detokenize(ids.slice(0, 1), true)).to.equal('');
    expect(tokenizer.unknownId([...ids, 10, 11])).to.equal(10);
  });
});
