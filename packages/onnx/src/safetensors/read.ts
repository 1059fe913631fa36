/** Bytes an element of each safetensors datatype takes. */
const ELEMENT_BYTES = new Map(
  Object.entries({
    BOOL: 1,
    U8: 1,
    I8: 1,
    F8_E4M3: 1,
    F8_E5M2: 1,
    U16: 2,
    I16: 2,
    F16: 2,
    BF16: 2,
    U32: 4,
    I32: 4,
    F32: 4,
    U64: 8,
    I64: 8,
    F64: 8,
  }),
);

/** The format's own bound; it keeps a corrupt length from being allocated and parsed. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;

export interface SafeTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Little-endian, row-major; a view of the file's bytes. */
  readonly bytes: Uint8Array;
}

/** A file that isn't safetensors, or is damaged; the message says where. */
export class SafetensorsError extends Error {
  override readonly name = 'SafetensorsError';
}

/**
 * Reads a safetensors file: u64 header length, JSON header, then the tensors' bytes without holes.
 *
 * @returns the tensors by name, as views of `file`.
 * @throws SafetensorsError when the file is cut off, its header is out of bounds or malformed, a datatype is
 *   unknown, a tensor's size doesn't match its shape, or tensors overlap, leave holes or pass the file's end.
 */
export function readSafetensors(file: Uint8Array): Map<string, SafeTensor> {
  const headerBytes = headerLength(file);
  const header = parseHeader(file.subarray(LENGTH_BYTES, LENGTH_BYTES + headerBytes));
  const data = file.subarray(LENGTH_BYTES + headerBytes);
  const tensors = new Map<string, SafeTensor>();
  const ranges: { name: string; begin: number; end: number }[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const { dtype, shape, begin, end } = parseEntry(name, entry);
    if (end > data.length) {
      throw new SafetensorsError(
        `tensor ${name} ends at byte ${end} of the data, which has only ${data.length}: the file is cut off`,
      );
    }
    ranges.push({ name, begin, end });
    tensors.set(name, { dtype, shape, bytes: data.subarray(begin, end) });
  }
  checkCoverage(ranges, data.length);
  return tensors;
}

function headerLength(file: Uint8Array): number {
  if (file.length < LENGTH_BYTES) throw new SafetensorsError(`${file.length} bytes are too few for a header`);
  const declared = new DataView(file.buffer, file.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  if (declared > BigInt(MAX_HEADER_BYTES)) {
    throw new SafetensorsError(`a header of ${declared} bytes is over the format's ${MAX_HEADER_BYTES}`);
  }
  const length = Number(declared);
  if (length > file.length - LENGTH_BYTES) {
    throw new SafetensorsError(`the header should have ${length} bytes, the file has ${file.length} in all`);
  }
  return length;
}

function parseHeader(bytes: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new SafetensorsError('the header is not JSON in UTF-8', { cause });
  }
  if (!isRecord(header)) throw new SafetensorsError('the header is not a JSON object');
  return header;
}

function parseEntry(
  name: string,
  entry: unknown,
): { dtype: string; shape: number[]; begin: number; end: number } {
  if (!isRecord(entry)) throw new SafetensorsError(`tensor ${name}: its entry is not an object`);
  const { dtype, shape, data_offsets: offsets } = entry;
  const size = typeof dtype === 'string' ? ELEMENT_BYTES.get(dtype) : undefined;
  if (typeof dtype !== 'string' || size === undefined) {
    throw new SafetensorsError(`tensor ${name}: unknown datatype ${JSON.stringify(dtype)}`);
  }
  if (!isSizes(shape)) throw new SafetensorsError(`tensor ${name}: malformed shape`);
  const [begin, end, ...more] = isSizes(offsets) ? offsets : [];
  if (begin === undefined || end === undefined || more.length > 0 || end < begin) {
    throw new SafetensorsError(`tensor ${name}: malformed data_offsets`);
  }
  const expected = shape.reduce((product, dim) => product * dim, size);
  if (!Number.isSafeInteger(expected) || expected !== end - begin) {
    throw new SafetensorsError(`tensor ${name}: ${end - begin} bytes for ${dtype} [${shape.join(', ')}]`);
  }
  return { dtype, shape, begin, end };
}

/** The format allows neither holes nor overlaps, so that nothing can hide in a file or be counted twice. */
function checkCoverage(ranges: { name: string; begin: number; end: number }[], length: number): void {
  ranges.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of ranges) {
    if (begin < covered) throw new SafetensorsError(`tensor ${name} overlaps the one before it`);
    if (begin > covered)
      throw new SafetensorsError(`a hole of ${begin - covered} bytes before tensor ${name}`);
    covered = end;
  }
  if (covered !== length) throw new SafetensorsError(`${length - covered} bytes after the last tensor`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSizes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
