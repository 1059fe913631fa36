const POWERS_OF_TEN = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
/** Below this, a float is written by the engine, with an exponent. */
const SMALLEST_PLAIN = 1e-7;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
/** The two characters of each number below 100. */
const TENS = Uint8Array.from({ length: 100 }, (_, pair) => ZERO + Math.floor(pair / 10));
const UNITS = Uint8Array.from({ length: 100 }, (_, pair) => ZERO + (pair % 10));
/** Longest plain float: sign, "0.", 6 zeros, 9 digits. */
const FLOAT_BYTES = 18;
/** Answers up to this many bytes leave as a string: Node then writes headers and body in one piece. */
const MAX_STRING_BYTES = 64 * 1024;

/** A larger buffer than this is not kept for the next answer. */
const MAX_SCRATCH_BYTES = 1 << 20;

/** Where answers are built; writing is synchronous, so one is enough, and is used by the next again. */
let scratch = Buffer.allocUnsafe(MAX_STRING_BYTES);

/**
 * Writes JSON straight into bytes: an answer of hundreds of floats takes a sixth of the time that building
 * and encoding a string takes.
 */
export class JsonWriter {
  #buffer = scratch;
  #at = 0;
  #ascii = true;

  /** Text that is JSON already. */
  raw(json: string): this {
    // One UTF-16 unit takes at most three bytes of UTF-8.
    this.#reserve(json.length * 3);
    const bytes = this.#buffer.write(json, this.#at);
    if (bytes !== json.length) this.#ascii = false;
    this.#at += bytes;
    return this;
  }

  byte(code: number): void {
    this.#reserve(1);
    this.#buffer[this.#at++] = code;
  }

  /** Bytes as base64 (RFC 4648), without quotes. */
  base64(bytes: Uint8Array): this {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    this.#reserve(text.length);
    this.#at += this.#buffer.write(text, this.#at, 'latin1');
    return this;
  }

  string(text: string): this {
    return this.raw(JSON.stringify(text));
  }

  /** Any number as JavaScript writes it, which reads back as the same number; null for what JSON can't say. */
  number(value: number): this {
    if (Object.is(value, -0)) return this.raw('-0');
    return this.raw(Number.isFinite(value) ? String(value) : 'null');
  }

  /** Numbers as {@link rounded}, with commas between. */
  roundedList(values: Float32Array, digits: number): this {
    for (let i = 0; i < values.length; i++) {
      if (i > 0) this.byte(COMMA);
      this.rounded(values[i] ?? 0, digits);
    }
    return this;
  }

  /** A number cut to at most 9 significant digits. */
  rounded(value: number, digits: number): this {
    const size = Math.abs(value);
    if (!(size < 1 && size >= SMALLEST_PLAIN)) {
      return this.number(Number.isFinite(value) ? Number(value.toPrecision(digits)) : value);
    }
    this.#reserve(FLOAT_BYTES);
    this.#fraction(value < 0, size, digits);
    return this;
  }

  /** What was written, a string if it is short and all ASCII; the writer is not to be used any more. */
  end(): string | Buffer {
    if (this.#ascii && this.#at <= MAX_STRING_BYTES) return this.#buffer.toString('latin1', 0, this.#at);
    const written = this.#buffer.subarray(0, this.#at);
    return this.#buffer === scratch ? Buffer.from(written) : written;
  }

  /** Writes a number between 1e-7 and 1 as "0.", its leading zeros and its digits without trailing zeros. */
  #fraction(negative: boolean, size: number, digits: number): void {
    let zeros = 0;
    while (size * power(zeros + 1) < 1) zeros += 1;
    let whole = Math.round(size * power(digits + zeros));
    let length = digits;
    if (whole >= power(digits)) {
      // Rounded up to the next power of ten: 0.09999999 -> 0.1.
      if (zeros === 0) {
        this.raw(negative ? '-1' : '1');
        return;
      }
      whole = Math.round(whole / 10);
      zeros -= 1;
    }
    while (length > 1 && whole % 10 === 0) {
      whole = whole / 10;
      length -= 1;
    }
    const buffer = this.#buffer;
    let at = this.#at;
    if (negative) buffer[at++] = MINUS;
    buffer[at++] = ZERO;
    buffer[at++] = POINT;
    for (let i = 0; i < zeros; i++) buffer[at++] = ZERO;
    at += length;
    this.#at = at;
    // At most 9 digits, so an int32; two of them at a time.
    let rest = whole | 0;
    for (; length > 1; length -= 2) {
      const left = (rest / 100) | 0;
      const pair = rest - left * 100;
      buffer[--at] = UNITS[pair] ?? ZERO;
      buffer[--at] = TENS[pair] ?? ZERO;
      rest = left;
    }
    if (length === 1) buffer[--at] = ZERO + rest;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.byteLength * 2, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
    if (larger.byteLength <= MAX_SCRATCH_BYTES) scratch = larger;
  }
}

function power(exponent: number): number {
  return POWERS_OF_TEN[exponent] ?? 10 ** exponent;
}
