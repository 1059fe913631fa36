import { type Datatype, elementBytes, MillraceError } from '@millrace/shared';
import { FIXED32, FIXED64, LENGTH, VARINT, WireReader } from './wire.js';

/** The lists of InferTensorContents by field number. */
const LISTS = [
  '',
  'bool_contents',
  'int_contents',
  'int64_contents',
  'uint_contents',
  'uint64_contents',
  'fp32_contents',
  'fp64_contents',
  'bytes_contents',
];

/** The datatypes that have a list. */
type TypedDatatype = Exclude<Datatype, 'FP16' | 'BF16'>;

const LIST_OF: Record<TypedDatatype, number> = {
  BOOL: 1,
  INT8: 2,
  INT16: 2,
  INT32: 2,
  INT64: 3,
  UINT8: 4,
  UINT16: 4,
  UINT32: 4,
  UINT64: 5,
  FP32: 6,
  FP64: 7,
  BYTES: 8,
};

/**
 * The bytes of a tensor whose elements came as typed contents.
 * @param messages InferTensorContents as they lie in the message; several count as one.
 * @param count elements that the tensor's shape says.
 * @returns row-major little-endian bytes, as {@link Tensor} has them; a view where they came so.
 * @throws MillraceError `invalid_input` when there are more or fewer elements, one is out of its datatype's range,
 * or they stand in another datatype's list.
 */
export function readContents(
  messages: readonly Uint8Array[],
  datatype: Datatype,
  count: number,
  field: string,
): Uint8Array {
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw invalid(field, `can't hold ${datatype}: send it in raw_input_contents`);
  }
  const values = listOf(messages, LIST_OF[datatype], datatype, field);
  if (datatype === 'BYTES') return joinBytes(values, count, field);
  const fixed = datatype === 'FP32' || datatype === 'FP64';
  let available = 0;
  for (const value of values) available += value.byteLength;
  const found = fixed ? available / elementBytes(datatype) : countVarints(values);
  // Before anything is allocated: a shape is quickly claimed.
  if (found !== count) throw invalid(field, `has ${found} elements, but the shape says ${count}`);
  if (fixed) return values.length === 1 && values[0] ? values[0] : Buffer.concat(values, available);
  return readIntegers(values, datatype, count, field);
}

/** The values of one list, packed or one by one. */
function listOf(
  messages: readonly Uint8Array[],
  list: number,
  datatype: TypedDatatype,
  field: string,
): Uint8Array[] {
  const values: Uint8Array[] = [];
  for (const message of messages) {
    const reader = new WireReader(message);
    while (reader.next()) {
      if (reader.field !== list) {
        const other = LISTS[reader.field];
        if (other) {
          const its = `${LISTS[list]} is the list of ${datatype}`;
          throw invalid(field, `has ${other}, but ${its}`);
        }
        reader.skip();
      } else if (reader.wire === LENGTH) {
        const value = reader.bytes();
        // An empty packed list has no elements; an empty BYTES element is one.
        if (value.byteLength > 0 || datatype === 'BYTES') values.push(value);
      } else {
        reader.require(kindOf(datatype));
        values.push(reader.value());
      }
    }
  }
  for (const value of values) {
    if (datatype !== 'BYTES' && value.byteLength % unitBytes(datatype) !== 0) {
      throw invalid(field, 'ends inside an element');
    }
  }
  return values;
}

/** How a single element is written. */
function kindOf(datatype: TypedDatatype): number {
  if (datatype === 'FP32') return FIXED32;
  return datatype === 'FP64' ? FIXED64 : VARINT;
}

function unitBytes(datatype: Datatype): number {
  return datatype === 'FP32' || datatype === 'FP64' ? elementBytes(datatype) : 1;
}

function countVarints(values: readonly Uint8Array[]): number {
  let count = 0;
  for (const value of values) for (const byte of value) if (byte < 0x80) count += 1;
  return count;
}

function readIntegers(
  values: readonly Uint8Array[],
  datatype: TypedDatatype,
  count: number,
  field: string,
): Uint8Array {
  const bytes = elementBytes(datatype);
  const data = new Uint8Array(count * bytes);
  const view = new DataView(data.buffer);
  const write = writerOf(datatype, view);
  let at = 0;
  for (const value of values) {
    const reader = new WireReader(value);
    while (!reader.done) {
      if (!write(reader, at)) throw invalid(field, `has an element that is no ${datatype}`);
      at += bytes;
    }
  }
  return data;
}

type WriteNext = (reader: WireReader, at: number) => boolean;

function writerOf(datatype: string, view: DataView): WriteNext {
  switch (datatype) {
    case 'BOOL':
      return (reader, at) => {
        view.setUint8(at, reader.packedUint32() === 0 ? 0 : 1);
        return true;
      };
    case 'INT8':
      return within(-(2 ** 7), 2 ** 7 - 1, (at, value) => view.setInt8(at, value));
    case 'INT16':
      return within(-(2 ** 15), 2 ** 15 - 1, (at, value) => view.setInt16(at, value, true));
    case 'INT32':
      return within(-(2 ** 31), 2 ** 31 - 1, (at, value) => view.setInt32(at, value, true));
    case 'UINT8':
      return upTo(2 ** 8 - 1, (at, value) => view.setUint8(at, value));
    case 'UINT16':
      return upTo(2 ** 16 - 1, (at, value) => view.setUint16(at, value, true));
    case 'UINT32':
      return upTo(2 ** 32 - 1, (at, value) => view.setUint32(at, value, true));
    default:
      return (reader, at) => {
        reader.packed64(view, at);
        return true;
      };
  }
}

function within(min: number, max: number, set: (at: number, value: number) => void): WriteNext {
  return (reader, at) => {
    const value = reader.packedInt32();
    if (value === undefined || value < min || value > max) return false;
    set(at, value);
    return true;
  };
}

function upTo(max: number, set: (at: number, value: number) => void): WriteNext {
  return (reader, at) => {
    const value = reader.packedUint32();
    if (value === undefined || value > max) return false;
    set(at, value);
    return true;
  };
}

/** BYTES elements with their lengths before them. */
function joinBytes(values: readonly Uint8Array[], count: number, field: string): Uint8Array {
  if (values.length !== count) {
    throw invalid(field, `has ${values.length} elements, but the shape says ${count}`);
  }
  let total = 0;
  for (const value of values) total += 4 + value.byteLength;
  const data = Buffer.allocUnsafe(total);
  let at = 0;
  for (const value of values) {
    data.writeUInt32LE(value.byteLength, at);
    data.set(value, at + 4);
    at += 4 + value.byteLength;
  }
  return data;
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
