import { MillraceError } from '@millrace/shared';

/** Kinds of values in protobuf's wire format; groups (3 and 4) are long gone. */
export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH = 2;
export const FIXED32 = 5;

/** A varint has at most so many bytes. */
const MAX_VARINT = 10;
const MAX_FIELD = 2 ** 29 - 1;
const TWO_32 = 2 ** 32;
/** Room that a writer takes at a time for what is not given to it as bytes. */
const SMALL_BYTES = 256;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a message in protobuf's wire format, field by field, without copying: what it returns of bytes are views.
 * Every method throws MillraceError `invalid_input` where the bytes end too soon or can't be what they claim.
 */
export class WireReader {
  /** Of the field that was read last. */
  field = 0;
  wire = 0;
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;
  /** The halves of the varint that was read last. */
  #low = 0;
  #high = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = 0;
    this.#end = bytes.byteLength;
  }

  get done(): boolean {
    return this.#at >= this.#end;
  }

  /** Goes to the next field; false at the end. */
  next(): boolean {
    if (this.done) return false;
    this.#varint();
    const field = this.#high * 2 ** 29 + (this.#low >>> 3);
    if (field === 0 || field > MAX_FIELD) throw unreadable();
    this.field = field;
    this.wire = this.#low & 7;
    return true;
  }

  /** A field of another kind is not the one that the protocol has under this number. */
  require(wire: number): void {
    if (this.wire !== wire) throw unreadable();
  }

  bool(): boolean {
    this.require(VARINT);
    this.#varint();
    return this.#low !== 0 || this.#high !== 0;
  }

  /** A signed 64-bit number; one that is not safe comes as the nearest double, which is no safe integer either. */
  int64(): number {
    this.require(VARINT);
    return this.packedInt64();
  }

  uint64(): number {
    this.require(VARINT);
    this.#varint();
    return this.#high * TWO_32 + this.#low;
  }

  double(): number {
    this.require(FIXED64);
    const at = this.#take(8);
    return this.#bytes.readDoubleLE(at);
  }

  bytes(): Buffer {
    this.require(LENGTH);
    this.#varint();
    const length = this.#high * TWO_32 + this.#low;
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  /** Text as the specification of protobuf wants it: valid UTF-8. */
  string(field: string): string {
    const bytes = this.bytes();
    const text = bytes.toString('utf8');
    if (!text.includes('\ufffd')) return text;
    try {
      return strictUtf8.decode(bytes);
    } catch {
      throw new MillraceError('invalid_encoding', `${field} is not valid UTF-8.`, { field });
    }
  }

  /** A bare varint, as in a packed list, as {@link int64}. */
  packedInt64(): number {
    this.#varint();
    return (this.#high | 0) * TWO_32 + this.#low;
  }

  /** A bare varint written as a little-endian 64-bit number. */
  packed64(view: DataView, at: number): void {
    this.#varint();
    view.setUint32(at, this.#low, true);
    view.setUint32(at + 4, this.#high, true);
  }

  /** A bare varint as a signed number of 32 bits; undefined when it is none. */
  packedInt32(): number | undefined {
    this.#varint();
    const signed = this.#low | 0;
    // Negative numbers are written with the sign in all 64 bits.
    return (this.#high | 0) === signed >> 31 ? signed : undefined;
  }

  /** A bare varint as an unsigned number of 32 bits; undefined when it is none. */
  packedUint32(): number | undefined {
    this.#varint();
    return this.#high === 0 ? this.#low : undefined;
  }

  /** The field's value as it lies there. */
  value(): Uint8Array {
    const from = this.#at;
    this.skip();
    return this.#bytes.subarray(from, this.#at);
  }

  /** Passes over the field's value. */
  skip(): void {
    if (this.wire === VARINT) this.#varint();
    else if (this.wire === LENGTH) this.bytes();
    else if (this.wire === FIXED64) this.#take(8);
    else if (this.wire === FIXED32) this.#take(4);
    else throw unreadable();
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) throw unreadable();
    this.#at = at + length;
    return at;
  }

  #varint(): void {
    let low = 0;
    let high = 0;
    for (let i = 0; i < MAX_VARINT; i++) {
      if (this.#at >= this.#end) throw unreadable();
      const byte = this.#bytes[this.#at++] ?? 0;
      const bits = byte & 0x7f;
      if (i < 4) low |= bits << (7 * i);
      else if (i === 4) {
        low |= bits << 28;
        high = bits >> 4;
      } else high |= bits << (7 * i - 32);
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    throw unreadable();
  }
}

function unreadable(): MillraceError {
  return new MillraceError('invalid_input', 'The message is not one that this call takes.', {
    field: 'message',
  });
}

/** Writes a message in protobuf's wire format. Default values are left out, as proto3 does. */
export class WireWriter {
  readonly #chunks: Uint8Array[] = [];
  #small: Buffer = Buffer.allocUnsafe(SMALL_BYTES);
  #at = 0;
  #from = 0;
  /** Bytes so far. */
  length = 0;

  string(field: number, text: string): this {
    if (text === '') return this;
    const bytes = Buffer.byteLength(text);
    this.head(field, bytes);
    if (bytes > SMALL_BYTES) return this.raw(Buffer.from(text));
    this.#room(bytes);
    this.#at += this.#small.write(text, this.#at);
    this.length += bytes;
    return this;
  }

  bool(field: number, value: boolean): this {
    if (!value) return this;
    this.#varint(field * 8 + VARINT);
    this.#varint(1);
    return this;
  }

  /** A message inside the message. */
  message(field: number, inner: WireWriter): this {
    this.head(field, inner.length);
    for (const chunk of inner.chunks()) this.raw(chunk);
    return this;
  }

  /** A packed list of whole numbers >= 0. */
  sizes(field: number, sizes: readonly number[]): this {
    if (sizes.length === 0) return this;
    let bytes = 0;
    for (const size of sizes) bytes += varintBytes(size);
    this.head(field, bytes);
    for (const size of sizes) this.#varint(size);
    return this;
  }

  /** The tag and the length of a value whose `bytes` bytes are to follow by {@link raw}. */
  head(field: number, bytes: number): this {
    this.#varint(field * 8 + LENGTH);
    this.#varint(bytes);
    return this;
  }

  /** Bytes as they are; they must not change before {@link end}. */
  raw(bytes: Uint8Array): this {
    this.#cut();
    this.#chunks.push(bytes);
    this.length += bytes.byteLength;
    return this;
  }

  end(): Buffer {
    this.#cut();
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && Buffer.isBuffer(first)) return first;
    return Buffer.concat(this.#chunks, this.length);
  }

  chunks(): readonly Uint8Array[] {
    this.#cut();
    return this.#chunks;
  }

  #varint(value: number): void {
    this.#room(MAX_VARINT);
    const from = this.#at;
    let rest = value;
    while (rest >= 0x80) {
      this.#small[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#small[this.#at++] = rest;
    this.length += this.#at - from;
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#small.byteLength) return;
    this.#cut();
    this.#small = Buffer.allocUnsafe(SMALL_BYTES);
    this.#at = 0;
    this.#from = 0;
  }

  #cut(): void {
    if (this.#at === this.#from) return;
    this.#chunks.push(this.#small.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}
