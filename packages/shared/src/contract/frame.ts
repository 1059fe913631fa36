import { MillraceError } from '../errors/millrace-error.js';
import { checkTensor, type Datatype, isDatatype, type Tensor } from './tensor.js';

/**
 * The one binary format: HTTP bodies, payloads and replies.
 *
 *     bytes 0-3   "MRF1"
 *     bytes 4-7   uint32 little-endian: byte length of the JSON header
 *     then        the header, UTF-8 JSON; its `tensors` lists {name, datatype, shape, bytes}
 *     then        each tensor's bytes in listed order, little-endian, nothing between or behind
 *
 * The idea of a JSON header followed by raw tensors is the Open Inference Protocol's binary extension's.
 */
const MAGIC = 0x3146524d; // "MRF1" read as a little-endian uint32
const PREFIX_BYTES = 8;
const MAX_HEADER_BYTES = 1 << 20;

interface TensorEntry {
  name: string;
  datatype: Datatype;
  shape: number[];
  bytes: number;
}

export interface Frame<H> {
  header: H;
  tensors: Tensor[];
}

/**
 * Encodes a header (any JSON object without a `tensors` key) and tensors, not copying these.
 * @returns what lies one behind the other in the frame: its head, then each tensor's data.
 */
export function framePieces(header: object, tensors: readonly Tensor[]): Buffer[] {
  const entries: TensorEntry[] = tensors.map((t) => ({
    name: t.name,
    datatype: t.datatype,
    shape: t.shape,
    bytes: t.data.byteLength,
  }));
  const json = JSON.stringify({ ...header, tensors: entries });
  const jsonBytes = Buffer.byteLength(json);
  const head = Buffer.allocUnsafe(PREFIX_BYTES + jsonBytes);
  head.writeUInt32LE(MAGIC, 0);
  head.writeUInt32LE(jsonBytes, 4);
  head.write(json, PREFIX_BYTES);
  return [head, ...tensors.map(({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength))];
}

/** The same as one buffer; the tensors are copied once. */
export function encodeFrame(header: object, tensors: readonly Tensor[]): Buffer {
  return Buffer.concat(framePieces(header, tensors));
}

function corrupt(why: string): MillraceError {
  return new MillraceError('invalid_input', `The frame is damaged: ${why}.`, { field: 'frame' });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes a frame; tensors are views into `frame`.
 * @throws MillraceError `invalid_input` for a frame that is truncated, too long or inconsistent anywhere.
 */
export function decodeFrame(frame: Uint8Array): Frame<Record<string, unknown>> {
  const { header: parsed, end } = readHeader(frame);
  const { tensors: entries, ...header } = parsed;
  if (!Array.isArray(entries)) throw corrupt('its header lists no tensors');
  const tensors: Tensor[] = [];
  let at = end;
  for (const entry of entries as unknown[]) {
    const { name, datatype, shape, bytes } = tensorEntry(entry);
    if (at + bytes > frame.byteLength) throw corrupt(`it ends inside tensor ${name}`);
    const tensor: Tensor = { name, datatype, shape, data: frame.subarray(at, at + bytes) };
    checkTensor(tensor);
    tensors.push(tensor);
    at += bytes;
  }
  if (at !== frame.byteLength) throw corrupt(`${frame.byteLength - at} bytes follow its last tensor`);
  return { header, tensors };
}

/**
 * The header of a frame whose tensors may be missing.
 * @throws MillraceError `invalid_input` where not even that is whole.
 */
export function decodeFrameHeader(start: Uint8Array): Record<string, unknown> {
  return readHeader(start).header;
}

function readHeader(frame: Uint8Array): { header: Record<string, unknown>; end: number } {
  if (frame.byteLength < PREFIX_BYTES) throw corrupt('it is shorter than its prefix');
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (view.getUint32(0, true) !== MAGIC) throw corrupt('it does not begin with MRF1');
  const jsonBytes = view.getUint32(4, true);
  if (jsonBytes > MAX_HEADER_BYTES) throw corrupt(`its header is over ${MAX_HEADER_BYTES} bytes`);
  if (PREFIX_BYTES + jsonBytes > frame.byteLength) throw corrupt('it ends inside its header');
  let parsed: unknown;
  try {
    parsed = JSON.parse(utf8.decode(frame.subarray(PREFIX_BYTES, PREFIX_BYTES + jsonBytes)));
  } catch {
    throw corrupt('its header is not JSON');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw corrupt('its header is not an object');
  }
  return { header: parsed as Record<string, unknown>, end: PREFIX_BYTES + jsonBytes };
}

function tensorEntry(entry: unknown): TensorEntry {
  if (typeof entry !== 'object' || entry === null) throw corrupt('a tensor entry is not an object');
  const { name, datatype, shape, bytes } = entry as Partial<TensorEntry>;
  if (typeof name !== 'string') throw corrupt('a tensor has no name');
  if (!isDatatype(datatype)) throw corrupt(`tensor ${name} has an unknown datatype`);
  if (!Array.isArray(shape) || shape.some((n) => !Number.isSafeInteger(n) || n < 0)) {
    throw corrupt(`tensor ${name} has a bad shape`);
  }
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 0) {
    throw corrupt(`tensor ${name} has a bad byte length`);
  }
  return { name, datatype, shape, bytes };
}
