import { MillraceError } from '../errors/millrace-error.js';

/** Bytes of one element by datatype (Open Inference Protocol names); BYTES elements vary. */
const ELEMENT_BYTES = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  BF16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
} as const;

export type Datatype = keyof typeof ELEMENT_BYTES;
export const DATATYPES = Object.keys(ELEMENT_BYTES) as Datatype[];

export function isDatatype(value: unknown): value is Datatype {
  return typeof value === 'string' && Object.hasOwn(ELEMENT_BYTES, value);
}

/** Bytes of one element, or 0 for BYTES, whose elements are uint32 length + bytes. */
export function elementBytes(datatype: Datatype): number {
  return ELEMENT_BYTES[datatype];
}

/**
 * A tensor as it travels: `data` is row-major, little-endian, without padding. BOOL is one byte an element
 * (0 or 1); a BYTES element is a uint32 length and that many bytes. Items are on the first axis.
 */
export interface Tensor {
  name: string;
  datatype: Datatype;
  shape: number[];
  data: Uint8Array;
}

/** Name, datatype and shape of a model's input or output; -1 is a dimension of any size. */
export interface TensorSpec {
  name: string;
  datatype: Datatype;
  shape: number[];
  /** The input may be left out; the model is then fed zero elements an item. */
  optional?: boolean | undefined;
}

/** More elements than this are refused wherever a shape is read, so that products can't overflow. */
const MAX_ELEMENTS = 2 ** 31 - 1;

/**
 * The number of elements of a shape.
 * @throws MillraceError `invalid_input` naming `field` when a dimension is negative, not a whole number, or
 * the product passes 2^31 - 1.
 */
export function elementCount(shape: readonly number[], field = 'shape'): number {
  let count = 1;
  let zero = false;
  for (const [axis, size] of shape.entries()) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new MillraceError('invalid_input', `${field}[${axis}] must be a whole number >= 0.`, { field });
    }
    if (size === 0) zero = true;
    else count *= size;
    if (count > MAX_ELEMENTS) {
      throw new MillraceError('invalid_input', `${field} has more than ${MAX_ELEMENTS} elements.`, { field });
    }
  }
  return zero ? 0 : count;
}

/**
 * Checks that `data` holds just the elements that the shape says, walking the lengths of BYTES.
 * @throws MillraceError `invalid_input` naming the tensor.
 */
export function checkTensor(tensor: Tensor, field = `tensor ${tensor.name}`): void {
  const count = elementCount(tensor.shape, `${field}.shape`);
  if (tensor.datatype !== 'BYTES') {
    const expected = count * elementBytes(tensor.datatype);
    if (tensor.data.byteLength !== expected) {
      throw new MillraceError(
        'invalid_input',
        `${field} has ${tensor.data.byteLength} bytes, but its shape [${tensor.shape}] of ${tensor.datatype} takes ${expected}.`,
        { field },
      );
    }
    return;
  }
  const found = bytesOffsets(tensor.data, count, field).length - 1;
  if (found !== count) {
    throw new MillraceError(
      'invalid_input',
      `${field} has ${found} BYTES elements, but its shape says ${count}.`,
      {
        field,
      },
    );
  }
}

/** Start offset of each BYTES element, and the end of the last: `count + 1` numbers for a whole tensor. */
function bytesOffsets(data: Uint8Array, count: number, field: string): number[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const offsets = [0];
  let at = 0;
  while (at < data.byteLength) {
    if (offsets.length > count) {
      throw new MillraceError('invalid_input', `${field} has bytes behind its last element.`, { field });
    }
    if (at + 4 > data.byteLength) {
      throw new MillraceError('invalid_input', `${field} ends inside a BYTES length.`, { field });
    }
    at += 4 + view.getUint32(at, true);
    if (at > data.byteLength) {
      throw new MillraceError('invalid_input', `${field} ends inside a BYTES element.`, { field });
    }
    offsets.push(at);
  }
  return offsets;
}

/** A BYTES tensor from strings (UTF-8) or byte arrays; shape defaults to [elements.length]. */
export function bytesTensor(
  name: string,
  elements: readonly (string | Uint8Array)[],
  shape: number[] = [elements.length],
): Tensor {
  let total = 0;
  for (const e of elements) total += 4 + (typeof e === 'string' ? Buffer.byteLength(e) : e.byteLength);
  const data = Buffer.allocUnsafe(total);
  let at = 0;
  for (const e of elements) {
    const bytes = typeof e === 'string' ? Buffer.from(e) : e;
    data.set(bytes, at + 4);
    data.writeUInt32LE(bytes.byteLength, at);
    at += 4 + bytes.byteLength;
  }
  return { name, datatype: 'BYTES', shape, data };
}

/** The elements of a BYTES tensor, as views into its data. Errors as {@link checkTensor}. */
export function bytesElements(tensor: Tensor): Uint8Array[] {
  const offsets = bytesOffsets(tensor.data, elementCount(tensor.shape), `tensor ${tensor.name}`);
  const elements: Uint8Array[] = [];
  for (let i = 0; i + 1 < offsets.length; i++) {
    elements.push(tensor.data.subarray((offsets[i] ?? 0) + 4, offsets[i + 1]));
  }
  return elements;
}

/** Elements in one item: the product of every dimension but the first. */
export function elementsPerItem(shape: readonly number[]): number {
  return elementCount(shape.slice(1));
}

/**
 * Cuts a tensor into its items along the first axis, without copying.
 * @returns one view per item, row-major; for BYTES with the length prefixes kept.
 */
export function splitItems(tensor: Tensor): Uint8Array[] {
  const items = tensor.shape[0] ?? 0;
  const perItem = elementsPerItem(tensor.shape);
  const cuts: Uint8Array[] = new Array(items);
  if (tensor.datatype === 'BYTES') {
    const offsets = bytesOffsets(tensor.data, items * perItem, `tensor ${tensor.name}`);
    for (let i = 0; i < items; i++) {
      cuts[i] = tensor.data.subarray(offsets[i * perItem] ?? 0, offsets[(i + 1) * perItem] ?? 0);
    }
    return cuts;
  }
  const bytes = perItem * elementBytes(tensor.datatype);
  for (let i = 0; i < items; i++) cuts[i] = tensor.data.subarray(i * bytes, (i + 1) * bytes);
  return cuts;
}

/** Items `first` to `first + count - 1` of a tensor, as a view. */
export function sliceTensor(tensor: Tensor, first: number, count: number): Tensor {
  const shape = [count, ...tensor.shape.slice(1)];
  if (tensor.datatype === 'BYTES') {
    const perItem = elementsPerItem(tensor.shape);
    const offsets = bytesOffsets(tensor.data, (tensor.shape[0] ?? 0) * perItem, `tensor ${tensor.name}`);
    const from = offsets[first * perItem] ?? 0;
    const to = offsets[(first + count) * perItem] ?? 0;
    return { ...tensor, shape, data: tensor.data.subarray(from, to) };
  }
  const bytes = elementsPerItem(tensor.shape) * elementBytes(tensor.datatype);
  return { ...tensor, shape, data: tensor.data.subarray(first * bytes, (first + count) * bytes) };
}

/** One tensor of items given as their bytes; `itemShape` is the shape of one item, without the first axis. */
export function joinItems(
  name: string,
  datatype: Datatype,
  itemShape: readonly number[],
  items: readonly Uint8Array[],
): Tensor {
  let total = 0;
  for (const item of items) total += item.byteLength;
  const data = new Uint8Array(total);
  let at = 0;
  for (const item of items) {
    data.set(item, at);
    at += item.byteLength;
  }
  return { name, datatype, shape: [items.length, ...itemShape], data };
}

/** Tensors of one name, datatype and item shape, one behind the other: all their items in one. */
export function joinTensors(tensors: readonly Tensor[]): Tensor {
  const [first] = tensors;
  if (!first) throw new Error('no tensors to join');
  const { name, datatype, shape } = first;
  const items = tensors.reduce((sum, tensor) => sum + (tensor.shape[0] ?? 0), 0);
  return {
    name,
    datatype,
    shape: [items, ...shape.slice(1)],
    data: Buffer.concat(tensors.map(({ data }) => data)),
  };
}
