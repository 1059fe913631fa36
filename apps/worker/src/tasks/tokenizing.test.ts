import { expect } from 'chai';
import { TextTokenizer } from './tokenizing.js';

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];
const WORDS = ['a', 'b', 'cat', 'dog', '##s', 'the'];
const vocab = Object.fromEntries([...SPECIAL, ...WORDS].map((token, id) => [token, id]));

const definition = {
  version: '1.0',
  truncation: { max_length: 8, direction: 'Right', strategy: 'LongestFirst', stride: 0 },
  padding: { strategy: { Fixed: 8 }, direction: 'Right', pad_id: 0, pad_token: '[PAD]', pad_type_id: 0 },
  added_tokens: SPECIAL.map((content, id) => ({
    id,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  })),
  normalizer: {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: {
    type: 'TemplateProcessing',
    single: [
      { SpecialToken: { id: '[CLS]', type_id: 0 } },
      { Sequence: { id: 'A', type_id: 0 } },
      { SpecialToken: { id: '[SEP]', type_id: 0 } },
    ],
    pair: [],
    special_tokens: {
      '[CLS]': { id: '[CLS]', ids: [2], tokens: ['[CLS]'] },
      '[SEP]': { id: '[SEP]', ids: [3], tokens: ['[SEP]'] },
    },
  },
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab,
  },
};

const ids = (...tokens: string[]): number[] => tokens.map((token) => vocab[token] ?? -1);

describe('tokenization', () => {
  const tokenizer = new TextTokenizer(definition);

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
    expect(oneWord).to.deep.equal({ ids: ids('[CLS]', '[UNK]', '[SEP]'), truncated: false });
    const spaces = tokenizer.encode(`${' '.repeat(1_000_000)}cat`, room);
    expect(spaces).to.deep.equal({ ids: ids('[CLS]', 'cat', '[SEP]'), truncated: false });
  });

  it('cuts no surrogate pair in two', () => {
    const { ids: found, truncated } = tokenizer.encode('🙂'.repeat(50_000), 10);
    expect(truncated || found.length > 2).to.equal(true);
  });
});
