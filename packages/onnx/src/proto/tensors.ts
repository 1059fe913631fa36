import { DataType, type TensorProto } from './types.js';

/** Little-endian bytes of the element types that tensors are made from here. */
type TensorData = Float32Array | Int8Array | Uint8Array | Int32Array | BigInt64Array;

function dataTypeOf(data: TensorData): DataType {
  if (data instanceof Float32Array) return DataType.FLOAT;
  if (data instanceof Int8Array) return DataType.INT8;
  if (data instanceof Uint8Array) return DataType.UINT8;
  if (data instanceof Int32Array) return DataType.INT32;
  return DataType.INT64;
}

/**
 * An initializer from a typed array, `dims` empty for a scalar. The bytes are not copied.
 *
 * @throws RangeError when the number of elements isn't the product of `dims`.
 */
export function makeTensor(name: string, dims: readonly number[], data: TensorData): TensorProto {
  const count = dims.reduce((product, dim) => product * dim, 1);
  if (count !== data.length) {
    throw new RangeError(`tensor ${name}: ${data.length} elements for the shape [${dims.join(', ')}]`);
  }
  return {
    name,
    dims: [...dims],
    data_type: dataTypeOf(data),
    raw_data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  };
}
