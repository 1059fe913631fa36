import type { BadRequest } from './bad-request.js';

const utf16 = Buffer.from(JSON.stringify({ inputs: 'a' }), 'utf16le');
const brokenUtf8 = Buffer.concat([Buffer.from('{"inputs":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);

/** What is wrong with a body before anyone looks at what it says: the same at every door. */
export const BODIES: BadRequest[] = [
  { name: 'malformed JSON', body: '{"inputs": ', status: 400, field: 'body', code: 'invalid_json' },
  { name: 'an empty body', body: '', status: 400, field: 'body', code: 'invalid_json' },
  { name: 'invalid UTF-8', body: brokenUtf8, status: 400, field: 'body', code: 'invalid_encoding' },
  { name: 'UTF-16', body: utf16, status: 400, field: 'body', code: 'invalid_json' },
  {
    name: 'UTF-16 with its byte order mark',
    body: Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
    status: 400,
    field: 'body',
    code: 'invalid_encoding',
  },
  {
    name: 'nesting beyond the limit',
    body: '['.repeat(45_000),
    status: 400,
    field: 'body',
    code: 'nesting_too_deep',
  },
  { name: 'a body that is no object', body: '[1]', status: 400, field: 'body' },
  { name: 'a body over the limit', body: `{"inputs":"${'a'.repeat(300_000)}"}`, status: 413, field: 'body' },
  {
    name: 'another content type',
    body: '{"inputs":"a"}',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    field: 'Content-Type',
  },
  {
    name: 'another charset',
    body: '{"inputs":"a"}',
    headers: { 'content-type': 'application/json; charset=utf-16' },
    status: 415,
    field: 'Content-Type',
  },
  {
    name: 'an unknown coding',
    body: '{"inputs":"a"}',
    headers: { 'content-encoding': 'br' },
    status: 415,
    field: 'Content-Encoding',
  },
  {
    name: 'what is no gzip, but says so',
    body: '{"inputs":"a"}',
    headers: { 'content-encoding': 'gzip' },
    status: 400,
    field: 'body',
  },
];

export const NATIVE_TEXT: BadRequest[] = [
  { name: 'no inputs', body: {}, status: 400, field: 'inputs' },
  { name: 'null inputs', body: { inputs: null }, status: 400, field: 'inputs' },
  { name: 'an empty list', body: { inputs: [] }, status: 400, field: 'inputs' },
  { name: 'an empty text', body: { inputs: '' }, status: 400, field: 'inputs' },
  {
    name: 'a wrong type in the middle',
    body: { inputs: ['a', 'b', 3, 'c'] },
    status: 400,
    field: 'inputs[2]',
    index: 2,
  },
  { name: 'a list in a list', body: { inputs: [['a']] }, status: 400, field: 'inputs[0]', index: 0 },
  { name: 'a lone surrogate', body: '{"inputs":["a","\\ud800"]}', status: 400, field: 'inputs[1]', index: 1 },
  {
    name: 'more items than the limit',
    body: { inputs: Array(101).fill('a') },
    status: 400,
    field: 'inputs',
    code: 'too_many_items',
  },
  { name: 'a waitMs that is no number', body: { inputs: 'a', waitMs: 'soon' }, status: 400, field: 'waitMs' },
  { name: 'a negative waitMs', body: { inputs: 'a', waitMs: -1 }, status: 400, field: 'waitMs' },
  {
    name: 'a priority that is none',
    body: { inputs: 'a', priority: 'urgent' },
    status: 400,
    field: 'priority',
  },
  { name: 'a partial that is no flag', body: { inputs: 'a', partial: 'yes' }, status: 400, field: 'partial' },
  {
    name: 'nested parameters',
    body: { inputs: 'a', parameters: { x: {} } },
    status: 400,
    field: 'parameters.x',
  },
];

export const NATIVE_TENSORS: BadRequest[] = [
  {
    name: 'an item that is no object',
    body: { inputs: [{ fp32: [1] }, 7] },
    status: 400,
    field: 'inputs[1]',
    index: 1,
  },
  { name: 'an unknown tensor name', body: { inputs: { fp31: [1] } }, status: 400, field: 'inputs.fp31' },
  { name: 'no tensor at all', body: { inputs: {} }, status: 400, field: 'inputs' },
  { name: 'a wrong rank', body: { inputs: { fp32: [[1]] } }, status: 400, field: 'inputs.fp32' },
  {
    name: 'unequal shapes of two items',
    body: { inputs: [{ fp32: [1, 2] }, { fp32: [1] }] },
    status: 400,
    field: 'inputs[1].fp32',
    index: 1,
  },
  {
    name: 'an input that one item leaves out',
    body: { inputs: [{ fp32: [1], int8: [1] }, { fp32: [1] }] },
    status: 400,
    field: 'inputs[1].int8',
    index: 1,
  },
  { name: 'a string for a number', body: { inputs: { fp32: ['1'] } }, status: 400, field: 'inputs.fp32[0]' },
  { name: 'a float out of range', body: { inputs: { fp32: [1e39] } }, status: 400, field: 'inputs.fp32[0]' },
  {
    name: 'an integer out of range',
    body: { inputs: { int8: [128] } },
    status: 400,
    field: 'inputs.int8[0]',
  },
  {
    name: 'a fraction for an integer',
    body: { inputs: { int64: [1.5] } },
    status: 400,
    field: 'inputs.int64[0]',
  },
  {
    name: 'an integer that would lose digits',
    body: '{"inputs":{"int64":[9007199254740993]}}',
    status: 400,
    field: 'inputs.int64[0]',
  },
  { name: 'a number for a boolean', body: { inputs: { bool: [1] } }, status: 400, field: 'inputs.bool[0]' },
  {
    name: 'a lone surrogate',
    body: '{"inputs":{"bytes":["\\udc00"]}}',
    status: 400,
    field: 'inputs.bytes[0]',
  },
];
