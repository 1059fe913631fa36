import { isUtf8 } from 'node:buffer';
import { MillraceError } from '@millrace/shared';

const BODY = { field: 'body' };
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BOM = 0xfeff;

/**
 * Parses JSON as RFC 8259 has it: UTF-8 only, nothing repaired on the way, and no deeper than `maxDepth`.
 * A byte order mark at the start is ignored.
 * @throws MillraceError `invalid_encoding`, `nesting_too_deep` or `invalid_json`.
 */
export function parseStrictJson(body: Buffer, maxDepth: number): unknown {
  if (!isUtf8(body)) throw new MillraceError('invalid_encoding', undefined, BODY);
  // Checked before parsing: that is where deep nesting costs memory.
  if (body.byteLength > maxDepth && nestsDeeper(body, maxDepth)) {
    throw new MillraceError('nesting_too_deep', `The body nests deeper than ${maxDepth} levels.`, BODY);
  }
  const text = body.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === BOM ? text.slice(1) : text);
  } catch {
    // The parser's own message quotes the input.
    throw new MillraceError('invalid_json', undefined, BODY);
  }
}

function nestsDeeper(body: Buffer, maxDepth: number): boolean {
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

/** Index of the quote that ends a string whose first byte is at `start`. */
function endOfString(body: Buffer, start: number): number {
  let at = start;
  while (at < body.byteLength && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}
