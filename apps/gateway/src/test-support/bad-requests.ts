/** A request that a door has to refuse, and what the answer has to say. */
export interface BadRequest {
  name: string;
  body: unknown;
  headers?: Record<string, string>;
  status: number;
  /** The field that the answer names. */
  field: string;
  code?: string;
  index?: number;
}

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

const tensor = (changes: object): object => ({
  inputs: [{ name: 'fp32', shape: [2, 2], datatype: 'FP32', data: [1, 2, 3, 4], ...changes }],
});
export const OPEN_TENSORS: BadRequest[] = [
  { name: 'no inputs', body: {}, status: 400, field: 'inputs' },
  { name: 'empty inputs', body: { inputs: [] }, status: 400, field: 'inputs' },
  { name: 'an input that is no object', body: { inputs: ['fp32'] }, status: 400, field: 'inputs[0]' },
  { name: 'a missing name', body: tensor({ name: undefined }), status: 400, field: 'inputs[0].name' },
  { name: 'an unknown name', body: tensor({ name: 'fp31' }), status: 400, field: 'inputs[0].name' },
  {
    name: 'a repeated name',
    body: { inputs: Array(2).fill({ name: 'fp32', shape: [1, 1], datatype: 'FP32', data: [1] }) },
    status: 400,
    field: 'inputs[1].name',
  },
  { name: 'a wrong datatype', body: tensor({ datatype: 'FP64' }), status: 400, field: 'inputs[0].datatype' },
  { name: 'no datatype', body: tensor({ datatype: 'float' }), status: 400, field: 'inputs[0].datatype' },
  { name: 'a missing shape', body: tensor({ shape: undefined }), status: 400, field: 'inputs[0].shape' },
  { name: 'a negative shape', body: tensor({ shape: [-2, 2] }), status: 400, field: 'inputs[0].shape' },
  {
    name: 'an overflowing shape',
    body: tensor({ shape: [2 ** 31, 2 ** 31] }),
    status: 400,
    field: 'inputs[0].shape',
  },
  {
    name: 'a shape of many dimensions',
    body: tensor({ shape: Array(1000).fill(1) }),
    status: 400,
    field: 'inputs[0].shape must have at most',
  },
  { name: 'a fractional shape', body: tensor({ shape: [2, 1.5] }), status: 400, field: 'inputs[0].shape' },
  { name: 'a wrong rank', body: tensor({ shape: [4] }), status: 400, field: 'inputs[0].shape' },
  { name: 'no items', body: tensor({ shape: [0, 2], data: [] }), status: 400, field: 'inputs[0].shape' },
  {
    name: 'more items than the limit',
    body: tensor({ shape: [101, 1] }),
    status: 400,
    field: 'inputs[0].shape',
  },
  {
    name: 'fewer data than the shape',
    body: tensor({ data: [1, 2, 3] }),
    status: 400,
    field: 'inputs[0].data',
  },
  {
    name: 'more data than the shape',
    body: tensor({ data: [1, 2, 3, 4, 5] }),
    status: 400,
    field: 'inputs[0].data',
  },
  {
    name: 'nested data of another shape',
    body: tensor({ data: [[1, 2], [3]] }),
    status: 400,
    field: 'inputs[0].data[1]',
  },
  {
    name: 'data nested too deep',
    body: tensor({
      data: [
        [1, 2],
        [3, [4]],
      ],
    }),
    status: 400,
    field: 'inputs[0].data[1][1]',
  },
  { name: 'missing data', body: tensor({ data: undefined }), status: 400, field: 'inputs[0].data' },
  {
    name: 'a wrong element',
    body: tensor({ data: [1, 2, null, 4] }),
    status: 400,
    field: 'inputs[0].data[2]',
  },
  {
    name: 'inputs of different lengths',
    body: {
      inputs: [
        { name: 'fp32', shape: [1, 1], datatype: 'FP32', data: [1] },
        { name: 'int8', shape: [2, 1], datatype: 'INT8', data: [1, 2] },
      ],
    },
    status: 400,
    field: 'inputs',
  },
  { name: 'an id that is no string', body: { ...tensor({}), id: 4 }, status: 400, field: 'id' },
  {
    name: 'an unknown output',
    body: { ...tensor({}), outputs: [{ name: 'x' }] },
    status: 400,
    field: 'outputs[0].name',
  },
  {
    name: 'a repeated output',
    body: { ...tensor({}), outputs: [{ name: 'fp32_out' }, { name: 'fp32_out' }] },
    status: 400,
    field: 'outputs[1].name',
  },
  {
    name: 'binary data without the header that announces it',
    body: tensor({ data: undefined, parameters: { binary_data_size: 16 } }),
    status: 400,
    field: 'inputs[0].parameters.binary_data_size',
  },
  {
    name: 'a binary_data_output that is no flag',
    body: { ...tensor({}), parameters: { binary_data_output: 'yes' } },
    status: 400,
    field: 'parameters.binary_data_output',
  },
  {
    name: 'a binary_data that is no flag',
    body: { ...tensor({}), outputs: [{ name: 'fp32_out', parameters: { binary_data: 1 } }] },
    status: 400,
    field: 'outputs[0].parameters.binary_data',
  },
  {
    name: 'a negative priority',
    body: { ...tensor({}), parameters: { priority: -1 } },
    status: 400,
    field: 'parameters.priority',
  },
  {
    name: 'a timeout that is no whole number',
    body: { ...tensor({}), parameters: { timeout: 0.5 } },
    status: 400,
    field: 'parameters.timeout',
  },
  {
    name: 'nested parameters',
    body: { ...tensor({}), parameters: { x: {} } },
    status: 400,
    field: 'parameters.x',
  },
  {
    name: 'an integer out of range',
    body: '{"inputs":[{"name":"int64","shape":[1,2],"datatype":"INT64","data":[1,9223372036854775808]}]}',
    status: 400,
    field: 'inputs[0].data[1]',
  },
  {
    name: 'an integer of many digits with an exponent',
    body: '{"inputs":[{"name":"int64","shape":[1,1],"datatype":"INT64","data":[[1e18]]}]}',
    status: 400,
    field: 'inputs[0].data[0][0]',
  },
  {
    name: 'shared memory',
    body: tensor({ data: undefined, parameters: { shared_memory_region: 'x' } }),
    status: 501,
    field: 'inputs[0].parameters.shared_memory_region',
  },
  {
    name: 'a classification',
    body: { ...tensor({}), outputs: [{ name: 'fp32_out', parameters: { classification: 3 } }] },
    status: 501,
    field: 'outputs[0].parameters.classification',
  },
  {
    name: 'more inputs than any model has',
    body: { inputs: Array(2000).fill(7) },
    status: 400,
    field: 'inputs must have at most',
  },
];

const texts = (changes: object): object => ({
  inputs: [{ name: 'text', shape: [2], datatype: 'BYTES', data: ['a', 'b'], ...changes }],
});
export const OPEN_TEXT: BadRequest[] = [
  {
    name: 'a wrong type in the middle',
    body: texts({ data: ['a', 3] }),
    status: 400,
    field: 'inputs[0].data[1]',
  },
  { name: 'an empty text', body: texts({ data: ['a', ''] }), status: 400, field: 'inputs[0].data[1]' },
  { name: 'fewer texts than the shape', body: texts({ shape: [3] }), status: 400, field: 'inputs[0].data' },
  { name: 'a shape of two columns', body: texts({ shape: [1, 2] }), status: 400, field: 'inputs[0].shape' },
  {
    name: 'nested data under a flat shape',
    body: texts({ data: [['a'], ['b']] }),
    status: 400,
    field: 'inputs[0].data',
  },
];

/** A body of JSON with bytes behind it, and the header that tells where they begin. */
const binary = (json: object, bytes: number, length?: string): Pick<BadRequest, 'body' | 'headers'> => {
  const text = Buffer.from(JSON.stringify(json));
  return {
    body: Buffer.concat([text, Buffer.alloc(bytes)]),
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': length ?? String(text.byteLength),
    },
  };
};
const bytes = (size: unknown, changes: object = {}): object =>
  tensor({ data: undefined, parameters: { binary_data_size: size }, ...changes });
const HEADER = 'Inference-Header-Content-Length';
const SIZE = 'inputs[0].parameters.binary_data_size';
export const OPEN_BINARY: BadRequest[] = [
  ...['-1', 'x', '', '1.5', '0x10', '1, 2', '1e3', '99999999999999999999'].map((length) => ({
    name: `a length of the JSON that is "${length}"`,
    ...binary(bytes(16), 16, length),
    status: 400,
    field: HEADER,
  })),
  {
    name: 'a length of the JSON beyond the body',
    ...binary(bytes(16), 16, '5000'),
    status: 400,
    field: HEADER,
  },
  {
    name: 'a length of the JSON that ends inside it',
    ...binary(bytes(16), 16, '20'),
    status: 400,
    field: 'body',
    code: 'invalid_json',
  },
  {
    name: 'a length of the JSON that reaches into the bytes',
    ...binary(bytes(16), 16, String(JSON.stringify(bytes(16)).length + 1)),
    status: 400,
    field: 'body',
    code: 'invalid_json',
  },
  {
    name: 'raw bytes for a model of several inputs',
    ...binary({}, 16, '0'),
    status: 400,
    field: 'body',
  },
  { name: 'truncated bytes', ...binary(bytes(16), 15), status: 400, field: SIZE },
  { name: 'bytes behind the last tensor', ...binary(bytes(16), 17), status: 400, field: 'body has 1 bytes' },
  {
    name: 'bytes behind tensors that are all in the JSON',
    ...binary(tensor({}), 4),
    status: 400,
    field: 'body has 4 bytes',
  },
  { name: 'fewer bytes than the shape', ...binary(bytes(12), 12), status: 400, field: 'inputs[0] has 12' },
  { name: 'more bytes than the shape', ...binary(bytes(20), 20), status: 400, field: 'inputs[0] has 20' },
  {
    name: 'an overflowing shape of bytes',
    ...binary(bytes(16, { shape: [3, 2 ** 62] }), 16),
    status: 400,
    field: 'inputs[0].shape',
  },
  {
    name: 'a product of the shape that overflows',
    ...binary(bytes(16, { shape: [64, 2 ** 26] }), 16),
    status: 400,
    field: 'inputs[0].shape',
  },
  ...[-1, 1.5, '16', true, 1e300].map((size) => ({
    name: `a number of bytes that is ${JSON.stringify(size)}`,
    ...binary(bytes(size), 16),
    status: 400,
    field: SIZE,
  })),
  {
    name: 'a tensor both in JSON and in bytes',
    ...binary(bytes(16, { data: [1, 2, 3, 4] }), 16),
    status: 400,
    field: 'inputs[0].data',
  },
  {
    name: 'a tensor neither in JSON nor in bytes',
    ...binary(tensor({ data: undefined }), 0),
    status: 400,
    field: 'inputs[0].data',
  },
  {
    name: 'a BYTES element longer than the tensor',
    ...binary(bytes(4, { name: 'bytes', datatype: 'BYTES', shape: [2, 1] }), 4),
    status: 400,
    field: 'inputs[0]',
  },
  {
    name: 'a BOOL that is neither 0 nor 1',
    body: Buffer.concat([
      Buffer.from(JSON.stringify(bytes(1, { name: 'bool', datatype: 'BOOL', shape: [1, 1] }))),
      Buffer.of(2),
    ]),
    headers: {
      'inference-header-content-length': String(
        JSON.stringify(bytes(1, { name: 'bool', datatype: 'BOOL', shape: [1, 1] })).length,
      ),
    },
    status: 400,
    field: 'inputs[0].data[0]',
  },
];

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
