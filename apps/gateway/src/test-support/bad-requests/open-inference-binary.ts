import { type BadRequest, tensor } from './bad-request.js';

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
