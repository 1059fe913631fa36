import { expect } from 'chai';
import { TINY_TOKENIZER, tinyVocabulary } from '../test-support/tiny-tokenizer.js';
import { TextTokenizer } from './tokenizing.js';

const ids = (...tokens: string[]): number[] => tokens.map((token) => tinyVocabulary[token] ?? -1);

describe('tokenization', () => {
  const tokenizer = new TextTokenizer(TINY_TOKENIZER);

  it('neither pads nor truncates by the settings in tokenizer.json', () => {
    const short = tokenizer.encode('the cats', 20);
    expect(short).to.deep.equal({ ids: ids('[CLS]', 'the', 'cat', '##s', '[SEP]'), truncated: false });
    const twelve = tokenizer.encode('a b '.repeat(6), 20);
    expect(twelve.ids).to.have.length(14);
    expect(twelve.truncated).to.equal(false);
  });

  it('cuts at the limit and keeps the special tokens at both ends', () => {
    const { ids: cut, truncated } = tokenizer.encode('a b a b a b', 5);
    expect(cut).to.deep.equal(ids('[CLS]', 'a', 'b', 'a', '[SEP]'));
    expect(truncated).to.equal(true);
    expect(tokenizer.encode('a b a', 5).truncated).to.equal(false);
  });

  it('gives an empty text its special tokens alone', () => {
    expect(tokenizer.encode('', 8)).to.deep.equal({ ids: ids('[CLS]', '[SEP]'), truncated: false });
  });

  it('gives a million characters the tokens of its beginning, wherever words end', () => {
    const room = 30;
    const long = 'the cats dog '.repeat(80_000);
    const expected = tokenizer.encode('the cats dog '.repeat(20), room);
    expect(tokenizer.encode(long, room)).to.deep.equal(expected);
    const oneWord = tokenizer.encode('x'.repeat(1_000_000), room);
    expect(oneWord).to.deep.equal({ ids: ids('[CLS]', '[UNK]', '[SEP]'), truncated: true });
    const longWord = tokenizer.encode(`${'x'.repeat(10_000)} cat`, room);
    expect(longWord).to.deep.equal({ ids: ids('[CLS]', '[UNK]', 'cat', '[SEP]'), truncated: false });
    const spaces = tokenizer.encode(`${' '.repeat(1_000_000)}cat`, room);
    expect(spaces).to.deep.equal({ ids: ids('[CLS]', 'cat', '[SEP]'), truncated: false });
  });

  it('cuts no surrogate pair in two', () => {
    const { ids: found, truncated } = tokenizer.encode('🙂'.repeat(50_000), 10);
    expect(truncated || found.length > 2).to.equal(true);
  });

  it('puts special tokens round ids that were made elsewhere, unless they are there', () => {
    const whole = { ids: ids('[CLS]', 'a', 'b', '[SEP]'), truncated: false };
    expect(tokenizer.complete(ids('a', 'b'), 8)).to.deep.equal(whole);
    expect(tokenizer.complete(ids('[CLS]', 'a', 'b', '[SEP]'), 8)).to.deep.equal(whole);
    expect(tokenizer.complete(ids('[CLS]', 'a', 'b'), 8)).to.deep.equal(whole);
    expect(tokenizer.complete(ids('a', 'b', '[SEP]'), 8)).to.deep.equal(whole);
    expect(tokenizer.complete(ids('[CLS]'), 8).ids).to.deep.equal(ids('[CLS]', '[SEP]'));
  });

  it('cuts ids that were made elsewhere between the special tokens', () => {
    const cut = { ids: ids('[CLS]', 'a', 'b', 'a', '[SEP]'), truncated: true };
    expect(tokenizer.complete(ids('a', 'b', 'a', 'b'), 5)).to.deep.equal(cut);
    expect(tokenizer.complete(ids('[CLS]', 'a', 'b', 'a', 'b', '[SEP]'), 5)).to.deep.equal(cut);
    expect(tokenizer.complete(ids('a', 'b', 'a'), 5).truncated).to.equal(false);
  });
});
