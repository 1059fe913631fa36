import { DATATYPES, type Datatype, type ModelDescription } from '@millrace/shared';

/** Numbers of the stand-in's embeddings. */
export const DIMENSIONS = 4;

export function textModel(name: string, overrides: Partial<ModelDescription> = {}): ModelDescription {
  return {
    name,
    version: '1',
    task: 'text-embedding',
    platform: 'onnxruntime_onnx',
    inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }],
    outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, DIMENSIONS] }],
    limits: { maxRequestItems: 100, maxTokens: 256 },
    jsonDigits: 7,
    // So many sessions that none is ever busy: each part travels alone unless a test says otherwise.
    cost: {
      fixed: 1,
      perItem: 0,
      perUnit: 0,
      perSquare: 0,
      correction: 1,
      sessions: 1000,
      capacity: 1_000_000,
      answered: 0,
    },
    ...overrides,
  };
}

const IDENTITY_TYPES: Record<string, Datatype> = {
  fp32: 'FP32',
  fp64: 'FP64',
  int64: 'INT64',
  int8: 'INT8',
  bool: 'BOOL',
  bytes: 'BYTES',
};

export function identityModel(name: string): ModelDescription {
  const tensors = Object.entries(IDENTITY_TYPES);
  return {
    name,
    version: '1',
    task: 'tensor',
    platform: 'onnxruntime_onnx',
    inputs: tensors.map(([key, datatype]) => ({ name: key, datatype, shape: [-1, -1], optional: true })),
    outputs: tensors.map(([key, datatype]) => ({ name: `${key}_out`, datatype, shape: [-1, -1] })),
    limits: { maxRequestItems: 100 },
  };
}

/** Takes and gives back any of the datatypes. */
export function everyTypeModel(name: string): ModelDescription {
  return {
    ...identityModel(name),
    inputs: DATATYPES.map((datatype) => ({
      name: datatype.toLowerCase(),
      datatype,
      shape: [-1, -1],
      optional: true,
    })),
    outputs: DATATYPES.map((datatype) => ({
      name: `${datatype.toLowerCase()}_out`,
      datatype,
      shape: [-1, -1],
    })),
  };
}

/** One input and one output, of a shape behind the first axis. */
export function oneInputModel(name: string, datatype: Datatype, inner: number[]): ModelDescription {
  const shape = [-1, ...inner];
  return {
    ...identityModel(name),
    inputs: [{ name: 'x', datatype, shape }],
    outputs: [{ name: 'x_out', datatype, shape }],
  };
}
