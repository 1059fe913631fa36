import type { BadRequest } from './bad-request.js';

export const TEI_EMBED: BadRequest[] = [
  { name: 'no inputs', body: {}, status: 413, field: 'inputs' },
  { name: 'null inputs', body: { inputs: null }, status: 413, field: 'inputs' },
  { name: 'a number for inputs', body: { inputs: 3 }, status: 413, field: 'inputs' },
  { name: 'an empty list', body: { inputs: [] }, status: 413, field: 'inputs' },
  { name: 'an empty text', body: { inputs: ['a', ''] }, status: 413, field: 'inputs[1]' },
  { name: 'a wrong type in the middle', body: { inputs: ['a', 3, 'b'] }, status: 413, field: 'inputs[1]' },
  { name: 'a lone surrogate', body: '{"inputs":["a","\\ud800"]}', status: 413, field: 'inputs[1]' },
  { name: 'more items than the limit', body: { inputs: Array(101).fill('a') }, status: 413, field: 'inputs' },
  { name: 'no token ids', body: { inputs: [[1], []] }, status: 413, field: 'inputs[1]' },
  { name: 'a fraction for a token id', body: { inputs: [[1], [1.5]] }, status: 413, field: 'inputs[1][0]' },
  { name: 'a token id past 32 bits', body: { inputs: [2 ** 32] }, status: 413, field: 'inputs[0]' },
  { name: 'a text among token ids', body: { inputs: [1, 'a'] }, status: 413, field: 'inputs[1]' },
  {
    name: 'a truncate that is no flag',
    body: { inputs: 'a', truncate: 'no' },
    status: 413,
    field: 'truncate',
  },
  {
    name: 'a normalize that is no flag',
    body: { inputs: 'a', normalize: 1 },
    status: 413,
    field: 'normalize',
  },
  { name: 'a prompt', body: { inputs: 'a', prompt_name: 'query' }, status: 413, field: 'prompt_name' },
  { name: 'no dimensions', body: { inputs: 'a', dimensions: 0 }, status: 413, field: 'dimensions' },
  { name: 'too many dimensions', body: { inputs: 'a', dimensions: 5 }, status: 413, field: 'dimensions' },
  {
    name: 'cutting at the beginning',
    body: { inputs: 'a', truncation_direction: 'left' },
    status: 413,
    field: 'truncation_direction',
  },
  {
    name: 'cutting at no end',
    body: { inputs: 'a', truncation_direction: 'up' },
    status: 413,
    field: 'truncation_direction',
  },
];

export const TEI_SIMILARITY: BadRequest[] = [
  { name: 'no inputs', body: {}, status: 413, field: 'inputs' },
  { name: 'a text for inputs', body: { inputs: 'a' }, status: 413, field: 'inputs' },
  {
    name: 'no sentences',
    body: { inputs: { source_sentence: 'a' } },
    status: 413,
    field: 'inputs.sentences',
  },
  {
    name: 'no source sentence',
    body: { inputs: { sentences: ['a'] } },
    status: 413,
    field: 'inputs.source_sentence',
  },
  {
    name: 'an empty list of sentences',
    body: { inputs: { source_sentence: 'a', sentences: [] } },
    status: 413,
    field: 'inputs.sentences',
  },
  {
    name: 'an empty sentence',
    body: { inputs: { source_sentence: 'a', sentences: ['b', ''] } },
    status: 413,
    field: 'inputs.sentences[1]',
  },
  {
    name: 'more sentences than the limit',
    body: { inputs: { source_sentence: 'a', sentences: Array(100).fill('b') } },
    status: 413,
    field: 'inputs',
  },
  {
    name: 'a prompt',
    body: { inputs: { source_sentence: 'a', sentences: ['b'] }, parameters: { prompt_name: 'x' } },
    status: 413,
    field: 'parameters.prompt_name',
  },
];

export const TEI_TOKENIZE: BadRequest[] = [
  { name: 'token ids', body: { inputs: [1] }, status: 413, field: 'inputs' },
  { name: 'lists of token ids', body: { inputs: [[1]] }, status: 413, field: 'inputs[0]' },
  { name: 'an empty text', body: { inputs: '' }, status: 413, field: 'inputs' },
  {
    name: 'a flag that is none',
    body: { inputs: 'a', add_special_tokens: 1 },
    status: 413,
    field: 'add_special_tokens',
  },
  { name: 'a prompt', body: { inputs: 'a', prompt_name: 'x' }, status: 413, field: 'prompt_name' },
];

export const TEI_DECODE: BadRequest[] = [
  { name: 'no ids', body: {}, status: 413, field: 'ids' },
  { name: 'an empty list', body: { ids: [] }, status: 413, field: 'ids' },
  { name: 'a text', body: { ids: 'a' }, status: 413, field: 'ids' },
  { name: 'texts', body: { ids: ['a'] }, status: 413, field: 'ids[0]' },
  { name: 'a negative id', body: { ids: [[1], [-1]] }, status: 413, field: 'ids[1][0]' },
  { name: 'more lists than the limit', body: { ids: Array(101).fill([1]) }, status: 413, field: 'ids' },
];
