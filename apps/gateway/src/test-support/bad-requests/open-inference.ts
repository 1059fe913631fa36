import { type BadRequest, tensor } from './bad-request.js';

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
    name: 'a sequence',
    body: { ...tensor({}), parameters: { sequence_id: 5 } },
    status: 501,
    field: 'parameters.sequence_id',
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
