import { MillraceProtocolError } from './errors.js';
import type { Parameters } from './options.js';
import { ARRAYS, type Datatype, elementCount, type Tensor } from './tensors.js';

// The binary tensor extension of the Open Inference Protocol, version 2: a JSON header, then the tensors' bytes
// in its order, little-endian and without padding. BYTES elements are a uint32 length and that many bytes.

const LENGTH_BYTES = 4;

export interface InferHeader {
  id?: string | undefined;
  parameters?: Parameters | undefined;
  outputs?: readonly string[] | undefined;
}

/** A request body, and how many bytes of it are the JSON header. */
export interface BinaryBody {
  body: Uint8Array<ArrayBuffer>;
  headerLength: number;
}

/** Writes a request that asks for binary outputs. */
export function encodeInfer(
  tensors: Readonly<Record<string, Tensor>>,
  { id, parameters, outputs }: InferHeader,
): BinaryBody {
  requireLittleEndian();
  const named = Object.entries(tensors).map(([name, tensor]) => ({ name, tensor, size: byteSize(tensor) }));
  const header = new TextEncoder().encode(
    JSON.stringify({
      id,
      parameters: { ...parameters, binary_data_output: true },
      inputs: named.map(({ name, tensor: { shape, datatype }, size }) => ({
        name,
        shape,
        datatype,
        parameters: { binary_data_size: size },
      })),
      outputs: outputs?.map((name) => ({ name })),
    }),
  );
  const body = new Uint8Array(named.reduce((total, { size }) => total + size, header.length));
  body.set(header);
  let at = header.length;
  for (const { tensor, size } of named) {
    writeTensor(tensor, body.subarray(at, at + size));
    at += size;
  }
  return { body, headerLength: header.length };
}

/** The JSON header of an answer, as far as it is read. */
export interface AnswerHeader {
  model_name: string;
  model_version?: string;
  id?: string;
  parameters?: Parameters;
}

interface OutputEntry {
  name: string;
  shape: number[];
  datatype: Datatype;
  parameters?: { binary_data_size?: number };
}

export interface DecodedAnswer {
  header: AnswerHeader;
  outputs: Record<string, Tensor>;
}

/**
 * Reads an answer. Tensors are views into `body` where their place in it allows that, copies otherwise.
 * @param headerLength `Inference-Header-Content-Length`; null: the whole body is JSON.
 * @throws MillraceProtocolError when the lengths, shapes and bytes don't agree.
 */
export function decodeInfer(body: ArrayBuffer, headerLength: string | null): DecodedAnswer {
  requireLittleEndian();
  const length = headerLength === null ? body.byteLength : Number(headerLength);
  if (!Number.isSafeInteger(length) || length < 0 || length > body.byteLength) {
    throw new MillraceProtocolError(
      `The answer has ${body.byteLength} bytes, but a header of ${headerLength}.`,
    );
  }
  const header = readHeader(new Uint8Array(body, 0, length));
  let at = length;
  const outputs = header.outputs.map((entry): [string, Tensor] => {
    const size = entry.parameters?.binary_data_size;
    if (size === undefined) {
      throw new MillraceProtocolError(`The output ${entry.name} is not in binary, as it was asked for.`);
    }
    const tensor = readTensor(entry, body, at, size);
    at += size;
    return [entry.name, tensor];
  });
  if (at !== body.byteLength) {
    throw new MillraceProtocolError(`The answer has ${body.byteLength - at} bytes behind its last output.`);
  }
  return { header, outputs: Object.fromEntries(outputs) };
}

function readHeader(bytes: Uint8Array): AnswerHeader & { outputs: OutputEntry[] } {
  try {
    const header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (Array.isArray(header?.outputs)) return header;
  } catch {
    // In a browser: another origin's header can't be read unless the server exposes it.
  }
  throw new MillraceProtocolError(
    'The answer is no inference answer, or its Inference-Header-Content-Length could not be read.',
  );
}

function readTensor(
  { name, datatype, shape }: OutputEntry,
  body: ArrayBuffer,
  at: number,
  size: number,
): Tensor {
  const misfit = () =>
    new MillraceProtocolError(`The output ${name} doesn't have the bytes that its shape [${shape}] says.`);
  if (!Number.isSafeInteger(size) || size < 0 || at + size > body.byteLength) throw misfit();
  const count = elementCount(shape);
  if (datatype === 'BYTES') {
    const data = readElements(new Uint8Array(body, at, size));
    if (data?.length !== count) throw misfit();
    return { datatype, shape, data };
  }
  const ArrayType = ARRAYS[datatype];
  if (!ArrayType)
    throw new MillraceProtocolError(`The output ${name} is of an unknown datatype, ${datatype}.`);
  if (size !== count * ArrayType.BYTES_PER_ELEMENT) throw misfit();
  const aligned = at % ArrayType.BYTES_PER_ELEMENT === 0;
  const data = aligned ? new ArrayType(body, at, count) : new ArrayType(body.slice(at, at + size), 0, count);
  return { datatype, shape, data } as Tensor;
}

/** The elements of BYTES as views; undefined where the last one is cut off. */
function readElements(bytes: Uint8Array): Uint8Array[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + LENGTH_BYTES > bytes.length) return undefined;
    const end = at + LENGTH_BYTES + view.getUint32(at, true);
    if (end > bytes.length) return undefined;
    elements.push(bytes.subarray(at + LENGTH_BYTES, end));
    at = end;
  }
  return elements;
}

function byteSize(tensor: Tensor): number {
  if (tensor.datatype !== 'BYTES') return tensor.data.byteLength;
  return tensor.data.reduce((total, element) => total + LENGTH_BYTES + element.length, 0);
}

function writeTensor(tensor: Tensor, into: Uint8Array<ArrayBuffer>): void {
  if (tensor.datatype !== 'BYTES') {
    const { buffer, byteOffset, byteLength } = tensor.data;
    into.set(new Uint8Array(buffer, byteOffset, byteLength));
    return;
  }
  const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
  let at = 0;
  for (const element of tensor.data) {
    view.setUint32(at, element.length, true);
    into.set(element, at + LENGTH_BYTES);
    at += LENGTH_BYTES + element.length;
  }
}

/** Arrays lie in memory as the machine orders bytes: like the protocol on all that is in use. */
function requireLittleEndian(): void {
  if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) {
    throw new Error('Binary tensors need a little-endian machine.');
  }
}
