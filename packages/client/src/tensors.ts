/** What holds the elements of a tensor, by its datatype (Open Inference Protocol names). */
export interface TensorData {
  /** 0 or 1 an element. */
  BOOL: Uint8Array;
  UINT8: Uint8Array;
  UINT16: Uint16Array;
  UINT32: Uint32Array;
  UINT64: BigUint64Array;
  INT8: Int8Array;
  INT16: Int16Array;
  INT32: Int32Array;
  INT64: BigInt64Array;
  /** The bits of IEEE 754 half precision numbers. */
  FP16: Uint16Array;
  /** The upper 16 bits of FP32 numbers. */
  BF16: Uint16Array;
  FP32: Float32Array;
  FP64: Float64Array;
  /** Any bytes an element; {@link textsOf} reads them as text. */
  BYTES: readonly Uint8Array[];
}

export type Datatype = keyof TensorData;

/** A tensor of one datatype: `data` is row-major, and has as many elements as the shape says. */
export interface TensorOf<D extends Datatype> {
  readonly datatype: D;
  readonly shape: readonly number[];
  readonly data: TensorData[D];
}

/** A tensor of any datatype: `datatype` tells which array `data` is. */
export type Tensor = { [D in Datatype]: TensorOf<D> }[Datatype];

/** What {@link tensor} takes beside the array itself. The bits of FP16 and BF16 are never made from numbers. */
interface TensorLists {
  BOOL: readonly (boolean | number)[];
  UINT8: readonly number[];
  UINT16: readonly number[];
  UINT32: readonly number[];
  UINT64: readonly (bigint | number)[];
  INT8: readonly number[];
  INT16: readonly number[];
  INT32: readonly number[];
  INT64: readonly (bigint | number)[];
  FP16: never;
  BF16: never;
  FP32: readonly number[];
  FP64: readonly number[];
  BYTES: readonly (string | Uint8Array)[];
}

type NumberArray = Exclude<TensorData[Datatype], readonly Uint8Array[]>;

interface NumberArrayType {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): NumberArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): NumberArray;
}

/** The array of each datatype; BYTES has none. */
export const ARRAYS: Record<Exclude<Datatype, 'BYTES'>, NumberArrayType> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/**
 * Makes a tensor, as in `tensor('FP32', Float32Array.of(1, 2, 3, 4), [2, 2])` or `tensor('BYTES', ['a text'])`.
 * @param data the datatype's own array, which is kept, or a list, which is copied. Strings become UTF-8.
 * @param shape `[data.length]` if left out.
 * @throws TypeError when `data` is of another datatype.
 * @throws RangeError when the shape says another number of elements, or one doesn't fit the datatype.
 */
export function tensor<D extends Datatype>(
  datatype: D,
  data: TensorData[D] | TensorLists[D],
  shape: readonly number[] = [data.length],
): TensorOf<D> {
  if (!shape.every((size) => Number.isSafeInteger(size) && size >= 0)) {
    throw new RangeError(`The shape [${shape}] must be whole numbers from 0 up.`);
  }
  const count = elementCount(shape);
  if (count !== data.length) {
    throw new RangeError(`The shape [${shape}] has ${count} elements, but the data ${data.length}.`);
  }
  const held = datatype === 'BYTES' ? bytesOf(data as TensorLists['BYTES']) : numbersOf(datatype, data);
  return { datatype, shape, data: held as TensorData[D] };
}

/**
 * The elements of a BYTES tensor as text.
 * @throws TypeError when one is not UTF-8.
 */
export function textsOf({ data }: TensorOf<'BYTES'>): string[] {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return data.map((bytes) => utf8.decode(bytes));
}

/** The product of the dimensions: 1 for no dimensions. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, size) => count * size, 1);
}

function bytesOf(list: readonly (string | Uint8Array)[]): Uint8Array[] {
  const utf8 = new TextEncoder();
  return Array.from(list, (element, index) => {
    if (element instanceof Uint8Array) return element;
    if (typeof element === 'string') return utf8.encode(element);
    throw new TypeError(`Element ${index} must be a string or a Uint8Array.`);
  });
}

function numbersOf(datatype: Exclude<Datatype, 'BYTES'>, data: unknown): NumberArray {
  const ArrayType = ARRAYS[datatype];
  if (data instanceof ArrayType) return data;
  if (!Array.isArray(data) || datatype === 'FP16' || datatype === 'BF16') {
    const lists = datatype === 'FP16' || datatype === 'BF16' ? '' : ' or a list';
    throw new TypeError(
      `The data of ${datatype} must be a ${(ArrayType as { name?: string }).name}${lists}.`,
    );
  }
  const numbers = new ArrayType(data.length);
  const isBig = datatype === 'INT64' || datatype === 'UINT64';
  const isFloat = datatype === 'FP32' || datatype === 'FP64';
  for (const [index, element] of data.entries()) {
    const value: number | bigint = datatype === 'BOOL' ? Number(element) : isBig ? BigInt(element) : element;
    numbers[index] = value as never;
    // An array wraps or cuts what it can't hold.
    const fits = isFloat ? typeof value === 'number' : numbers[index] === value;
    if (!fits || (datatype === 'BOOL' && (value as number) > 1)) {
      throw new RangeError(`Element ${index}, ${String(element)}, is no ${datatype}.`);
    }
  }
  return numbers;
}
