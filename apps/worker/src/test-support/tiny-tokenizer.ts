const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];
const WORDS = ['a', 'b', 'cat', 'dog', '##s', 'the'];
export const tinyVocabulary: Record<string, number> = Object.fromEntries(
  [...SPECIAL, ...WORDS].map((token, id) => [token, id]),
);

/** A WordPiece tokenizer of a few words, with settings for padding and truncation that must not be followed. */
export const TINY_TOKENIZER = {
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
    vocab: tinyVocabulary,
  },
};
