import { type Datatype, elementBytes, MillraceError } from '@millrace/shared';
import type { JsonWriter } from './json-writer.js';

declare global {
  interface String {
    /** ES2024, in Node since 20: false when the string has a lone surrogate. */
    isWellFormed(): boolean;
  }
}

/** A datatype whose elements have a fixed size and can be said in JSON. */
export type PlainDatatype = Exclude<Datatype, 'BYTES' | 'FP16' | 'BF16'>;

interface ElementCodec {
  /** What a JSON value must be, for the error message. */
  what: string;
  /** The same where numbers beyond 2^53 come as BigInts, with all their digits. */
  whatExactly?: string;
  /** Writes a JSON value at a byte offset; false when it is not one of this datatype. */
  write(view: DataView, at: number, value: unknown): boolean;
  read(view: DataView, at: number): number | bigint | boolean;
}

/** JSON numbers past 2^53 lose digits when parsed: they are refused unless they come as BigInts. */
const EXACT = 'that JSON can carry exactly (between -(2^53-1) and 2^53-1)';

function integer(
  bits: 8 | 16 | 32,
  signed: boolean,
  read: ElementCodec['read'],
  write: (view: DataView, at: number, value: number) => void,
): ElementCodec {
  const min = signed ? -(2 ** (bits - 1)) : 0;
  const max = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  return {
    what: `a whole number from ${min} to ${max}`,
    write(view, at, value) {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) return false;
      write(view, at, value);
      return true;
    },
    read,
  };
}

function exactInteger(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  return Number.isSafeInteger(value) ? BigInt(value as number) : undefined;
}

const CODECS: Record<PlainDatatype, ElementCodec> = {
  BOOL: {
    what: 'true or false',
    write(view, at, value) {
      if (typeof value !== 'boolean') return false;
      view.setUint8(at, value ? 1 : 0);
      return true;
    },
    read: (view, at) => view.getUint8(at) !== 0,
  },
  UINT8: integer(
    8,
    false,
    (view, at) => view.getUint8(at),
    (view, at, value) => view.setUint8(at, value),
  ),
  INT8: integer(
    8,
    true,
    (view, at) => view.getInt8(at),
    (view, at, value) => view.setInt8(at, value),
  ),
  UINT16: integer(
    16,
    false,
    (view, at) => view.getUint16(at, true),
    (view, at, value) => view.setUint16(at, value, true),
  ),
  INT16: integer(
    16,
    true,
    (view, at) => view.getInt16(at, true),
    (view, at, value) => view.setInt16(at, value, true),
  ),
  UINT32: integer(
    32,
    false,
    (view, at) => view.getUint32(at, true),
    (view, at, value) => view.setUint32(at, value, true),
  ),
  INT32: integer(
    32,
    true,
    (view, at) => view.getInt32(at, true),
    (view, at, value) => view.setInt32(at, value, true),
  ),
  UINT64: {
    what: `a whole number >= 0 ${EXACT}`,
    whatExactly: 'a whole number from 0 to 2^64-1, written without an exponent',
    write(view, at, value) {
      const exact = exactInteger(value);
      if (exact === undefined || exact !== BigInt.asUintN(64, exact)) return false;
      view.setBigUint64(at, exact, true);
      return true;
    },
    read: (view, at) => view.getBigUint64(at, true),
  },
  INT64: {
    what: `a whole number ${EXACT}`,
    whatExactly: 'a whole number from -2^63 to 2^63-1, written without an exponent',
    write(view, at, value) {
      const exact = exactInteger(value);
      if (exact === undefined || exact !== BigInt.asIntN(64, exact)) return false;
      view.setBigInt64(at, exact, true);
      return true;
    },
    read: (view, at) => view.getBigInt64(at, true),
  },
  FP32: {
    what: 'a number within FP32',
    write(view, at, value) {
      if (typeof value !== 'number' || !Number.isFinite(Math.fround(value))) return false;
      view.setFloat32(at, value, true);
      return true;
    },
    read: (view, at) => view.getFloat32(at, true),
  },
  FP64: {
    what: 'a number within FP64',
    write(view, at, value) {
      if (typeof value !== 'number' || !Number.isFinite(value)) return false;
      view.setFloat64(at, value, true);
      return true;
    },
    read: (view, at) => view.getFloat64(at, true),
  },
};

/** @throws MillraceError `invalid_input` for the datatypes that JSON has no form for. */
export function requireJsonForm(
  datatype: Datatype,
  field: string,
): asserts datatype is PlainDatatype | 'BYTES' {
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw new MillraceError('invalid_input', `${field} is ${datatype}, which has no form in JSON.`, {
      field,
    });
  }
}

export function codecOf(datatype: PlainDatatype): ElementCodec {
  return CODECS[datatype];
}

/**
 * A string that is to become a BYTES element. NUL is kept.
 * @param fieldOf names the value as the client wrote it.
 * @throws MillraceError `invalid_input` for anything else, and for a lone surrogate, which UTF-8 can't say.
 */
export function requireText(value: unknown, fieldOf: () => string, index: number): string {
  if (typeof value === 'string' && value.isWellFormed()) return value;
  const field = fieldOf();
  const fault = typeof value === 'string' ? 'has a lone surrogate, which is not text' : 'must be a string';
  throw new MillraceError('invalid_input', `${field} ${fault}.`, { field, index });
}

/** Bytes as numbers, copied only where they are not aligned. */
export function floatsOf(bytes: Uint8Array): Float32Array {
  const aligned = bytes.byteOffset % elementBytes('FP32') === 0 ? bytes : new Uint8Array(bytes);
  return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / elementBytes('FP32'));
}

/** Writes one element: floats and integers so that they read back exactly. */
export function writeElement(writer: JsonWriter, datatype: PlainDatatype, view: DataView, at: number): void {
  const value = CODECS[datatype].read(view, at);
  if (typeof value === 'number') writer.number(value);
  else writer.raw(String(value));
}
