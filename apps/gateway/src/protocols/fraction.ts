const POWERS_OF_TEN = Float64Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);
/** Smaller ones are written by the engine, with an exponent. */
const SMALLEST = 1e-7;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
/** The four characters of each number below 10,000. */
const QUADS = Uint8Array.from(
  { length: 40_000 },
  (_, at) => ZERO + (Math.floor(Math.floor(at / 4) / 10 ** (3 - (at % 4))) % 10),
);

/** Longest one: sign, "0.", 6 zeros, 9 digits. */
export const FRACTION_BYTES = 18;

/** Whether {@link writeFraction} can write it. */
export function isFraction(value: number): boolean {
  const size = Math.abs(value);
  return size < 1 && size >= SMALLEST;
}

/**
 * Writes a number between 1e-7 and 1, or its negative, cut to `digits` (1 to 9) significant digits: its sign, "0.", zeros,
 * digits without zeros at their end. Most of an answer is made of these, so signs and leading zeros, which no processor
 * can foresee, are written without branches.
 * @returns the place behind it; there is room for {@link FRACTION_BYTES}.
 */
export function writeFraction(out: Uint8Array, start: number, value: number, digits: number): number {
  const size = Math.abs(value);
  let at = start;
  out[at] = MINUS;
  at += value < 0 ? 1 : 0;
  let zeros = (size < 0.1 ? 1 : 0) + (size < 0.01 ? 1 : 0);
  out[at] = ZERO;
  out[at + 1] = POINT;
  out[at + 2] = ZERO;
  out[at + 3] = ZERO;
  at += 2 + zeros;
  for (let bound = 0.001; size < bound; bound /= 10) {
    zeros += 1;
    out[at++] = ZERO;
  }
  // At most 9 digits, so an int32.
  const whole = (size * (POWERS_OF_TEN[digits + zeros] as number) + 0.5) | 0;
  if (whole >= (POWERS_OF_TEN[digits] as number)) {
    // Rounded up to the next power of ten: 0.09999999 -> 0.1.
    if (zeros === 0) {
      out[at - 2] = ZERO + 1;
      return at - 1;
    }
    out[at - 1] = ZERO + 1;
    return at;
  }
  return writeDigits(out, at, whole, digits);
}

/** Apart, so that the engine may put the rest in its caller's loop: a float that is handed over costs an allocation. */
function writeDigits(out: Uint8Array, at: number, whole: number, digits: number): number {
  let end = at + digits;
  if (digits === 7) {
    // What embeddings are written with, and most of what is written.
    const left = (whole / 10_000) | 0;
    const high = left * 4;
    const low = (whole - left * 10_000) * 4;
    out[at] = QUADS[high + 1] as number;
    out[at + 1] = QUADS[high + 2] as number;
    out[at + 2] = QUADS[high + 3] as number;
    out[at + 3] = QUADS[low] as number;
    out[at + 4] = QUADS[low + 1] as number;
    out[at + 5] = QUADS[low + 2] as number;
    out[at + 6] = QUADS[low + 3] as number;
  } else {
    let rest = whole;
    for (let place = end - 1; place >= at; place--) {
      const left = (rest / 10) | 0;
      out[place] = ZERO + rest - left * 10;
      rest = left;
    }
  }
  while (out[end - 1] === ZERO) end -= 1;
  return end;
}
