import { bytesElements, bytesTensor, type Datatype, type TensorSpec } from '@millrace/shared';
import { type InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import type { WireTensor } from './messages.js';

type OrtType = OrtTensor.Type;

const ORT_TYPES: Partial<Record<Datatype, OrtType>> = {
  BOOL: 'bool',
  UINT8: 'uint8',
  UINT16: 'uint16',
  UINT32: 'uint32',
  UINT64: 'uint64',
  INT8: 'int8',
  INT16: 'int16',
  INT32: 'int32',
  INT64: 'int64',
  FP16: 'float16',
  FP32: 'float32',
  FP64: 'float64',
  BYTES: 'string',
};

const DATATYPES = new Map(Object.entries(ORT_TYPES).map(([datatype, type]) => [type, datatype as Datatype]));

/** The typed array that onnxruntime-node takes for a datatype. */
function typedArray(datatype: Datatype, data: Uint8Array<ArrayBuffer>): OrtTensor.DataType {
  const { buffer, byteOffset, byteLength } = data;
  switch (datatype) {
    case 'BOOL':
    case 'UINT8':
      return data;
    case 'INT8':
      return new Int8Array(buffer, byteOffset, byteLength);
    case 'UINT16':
    case 'FP16':
      return new Uint16Array(buffer, byteOffset, byteLength / 2);
    case 'INT16':
      return new Int16Array(buffer, byteOffset, byteLength / 2);
    case 'UINT32':
      return new Uint32Array(buffer, byteOffset, byteLength / 4);
    case 'INT32':
      return new Int32Array(buffer, byteOffset, byteLength / 4);
    case 'UINT64':
      return new BigUint64Array(buffer, byteOffset, byteLength / 8);
    case 'INT64':
      return new BigInt64Array(buffer, byteOffset, byteLength / 8);
    case 'FP32':
      return new Float32Array(buffer, byteOffset, byteLength / 4);
    case 'FP64':
      return new Float64Array(buffer, byteOffset, byteLength / 8);
    default:
      throw new Error(`onnxruntime takes no ${datatype} tensors here`);
  }
}

/** The wire form as onnxruntime takes it, without a copy (strings excepted). */
export function toOrt(tensor: WireTensor): OrtTensor {
  const type = ORT_TYPES[tensor.datatype];
  if (!type) throw new Error(`onnxruntime takes no ${tensor.datatype} tensors here`);
  if (tensor.datatype === 'BYTES') {
    const strings = bytesElements(tensor).map((bytes) => Buffer.from(bytes).toString('utf8'));
    return new OrtTensor('string', strings, tensor.shape);
  }
  return new OrtTensor(type, typedArray(tensor.datatype, tensor.data), tensor.shape);
}

/** onnxruntime's output in wire form; its buffer can be moved on. */
export function fromOrt(name: string, tensor: OrtTensor): WireTensor {
  const datatype = DATATYPES.get(tensor.type);
  if (!datatype) throw new Error(`the model gives ${name} as ${tensor.type}, which is not supported`);
  const shape = [...tensor.dims];
  if (tensor.type === 'string') {
    const { data } = bytesTensor(name, tensor.data as string[], shape);
    return { name, datatype, shape, data: new Uint8Array(data) };
  }
  const view = tensor.data as Exclude<OrtTensor.DataType, string[]>;
  const bytes = new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
  // Only a whole buffer may be moved; a view into a larger one is copied out.
  return {
    name,
    datatype,
    shape,
    data: bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice(),
  };
}

/** onnxruntime's metadata of inputs or outputs; what is no tensor of a known datatype is left out. */
export function specsOf(values: readonly InferenceSession.ValueMetadata[]): TensorSpec[] {
  const specs: TensorSpec[] = [];
  for (const value of values) {
    const datatype = value.isTensor ? DATATYPES.get(value.type) : undefined;
    if (!value.isTensor || !datatype) continue;
    // A dimension without a number has a name, or none.
    const shape = value.shape.map((size) => (typeof size === 'number' && size >= 0 ? size : -1));
    specs.push({ name: value.name, datatype, shape });
  }
  return specs;
}
