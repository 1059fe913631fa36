import { isUtf8 } from 'node:buffer';
import { MillraceError } from '@millrace/shared';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BOM = 0xfeff;
const WALKED_BYTES = 64;
const COMMA = 0x2c;
/** Parsing this many blocks the event loop for tens of ms; millions would block it for seconds. */
const MAX_VALUES = 500_000;

/**
 * Parses JSON as RFC 8259 has it: UTF-8 only, nothing repaired on the way, and no deeper than `maxDepth`.
 * A byte order mark at the start is ignored.
 * @param what it is, as messages call it.
 * @throws MillraceError `invalid_encoding`, `nesting_too_deep` or `invalid_json`.
 */
export function parseStrictJson(body: Buffer, maxDepth: number, what = 'body'): unknown {
  const at = { field: what };
  if (!isUtf8(body)) throw new MillraceError('invalid_encoding', `The ${what} is not valid UTF-8.`, at);
  // Checked before parsing: that is where deep nesting costs memory.
  if (body.byteLength > maxDepth && nestsDeeper(body, maxDepth)) {
    throw new MillraceError('nesting_too_deep', `The ${what} nests deeper than ${maxDepth} levels.`, at);
  }
  if (body.byteLength === 0)
    throw new MillraceError('invalid_json', `The ${what} is empty; it must be JSON.`, at);
  if (holdsMoreValues(body, MAX_VALUES)) {
    throw new MillraceError('body_too_large', `The ${what} holds more than ${MAX_VALUES} values.`, at);
  }
  const text = body.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === BOM ? text.slice(1) : text);
  } catch (error) {
    throw new MillraceError('invalid_json', `The ${what} is not valid JSON${placeOf(error as Error)}.`, at);
  }
}

/** Where the parser stopped; the rest of its message quotes the input. */
function placeOf({ message }: Error): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position !== undefined) return ` at character ${position}`;
  return message.includes('end of') ? ': it ends too early' : '';
}

function nestsDeeper(body: Buffer, maxDepth: number): boolean {
  // Most bodies have fewer brackets than they may nest, counted natively at a hundredth of the cost.
  if (hasAtMost(body, OPEN_BRACKET, OPEN_BRACE, maxDepth)) return false;
  let depth = 0;
  for (let at = 0; at < body.byteLength; at++) {
    const byte = body[at];
    if (byte === QUOTE) {
      at = endOfString(body, at + 1);
    } else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) {
      depth -= 1;
    }
  }
  return false;
}

/** Whether more than `limit` values are listed, told by the commas outside strings. */
function holdsMoreValues(body: Buffer, limit: number): boolean {
  if (body.byteLength <= limit || hasAtMost(body, COMMA, COMMA, 2 * limit - 1)) return false;
  let commas = 0;
  for (let at = 0; at < body.byteLength; at++) {
    const byte = body[at];
    if (byte === QUOTE) at = endOfString(body, at + 1);
    else if (byte === COMMA) commas += 1;
  }
  return commas >= limit;
}

/** Whether the two bytes together occur at most `limit` times. */
function hasAtMost(body: Buffer, first: number, second: number, limit: number): boolean {
  let count = 0;
  for (const byte of [first, second]) {
    for (let at = body.indexOf(byte); at >= 0; at = body.indexOf(byte, at + 1)) {
      count += 1;
      if (count > limit) return false;
    }
  }
  return true;
}

/** Index of the quote that ends a string whose first byte is at `start`; the body's end if none does. */
function endOfString(body: Buffer, start: number): number {
  let at = start;
  for (;;) {
    // Short strings are walked; a long one is searched natively, which costs more to begin.
    const walkTo = Math.min(at + WALKED_BYTES, body.byteLength);
    while (at < walkTo && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
    if (at >= body.byteLength || body[at] === QUOTE) return at;
    const quote = body.indexOf(QUOTE, at);
    if (quote < 0) return body.byteLength;
    let first = quote;
    while (first > at && body[first - 1] === BACKSLASH) first -= 1;
    // An odd number of backslashes escapes the quote.
    if ((quote - first) % 2 === 0) return quote;
    at = quote + 1;
  }
}
