const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;
const BOM_BYTES = [0xef, 0xbb, 0xbf];

/**
 * Finds values in the text of a JSON document that was parsed already, and so is known to be valid: what
 * `JSON.parse` loses (digits of large numbers) can be read where it stands.
 */
export class JsonSource {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Offset of the value at a path; of repeated keys the last one's, as `JSON.parse` has it. */
  find(path: readonly (string | number)[]): number | undefined {
    const bom = BOM_BYTES.every((byte, i) => this.#bytes[i] === byte);
    let at: number | undefined = this.#skipSpace(bom ? BOM_BYTES.length : 0);
    for (const step of path) {
      if (at === undefined) return undefined;
      at = typeof step === 'string' ? this.#member(at, step) : this.#element(at, step);
    }
    return at;
  }

  /** The value at a path as it is written. */
  text(path: readonly (string | number)[]): Buffer | undefined {
    const at = this.find(path);
    return at === undefined ? undefined : this.#bytes.subarray(at, this.#skipValue(at));
  }

  /** Gives the text of every value that is no list, of the (nested) lists at an offset, in order. */
  eachLeaf(start: number, take: (text: string) => void): void {
    let depth = 0;
    let at = start;
    do {
      at = this.#skipSpace(at);
      const byte = this.#bytes[at];
      if (byte === undefined) return;
      if (byte === OPEN_BRACKET) depth += 1;
      else if (byte === CLOSE_BRACKET) depth -= 1;
      else if (byte !== COMMA) {
        const end = this.#skipValue(at);
        take(this.#bytes.toString('latin1', at, end));
        at = end - 1;
      }
      at += 1;
    } while (depth > 0);
  }

  #member(start: number, name: string): number | undefined {
    if (this.#bytes[start] !== OPEN_BRACE) return undefined;
    let found: number | undefined;
    let at = this.#skipSpace(start + 1);
    while (at < this.#bytes.byteLength && this.#bytes[at] !== CLOSE_BRACE) {
      const keyEnd = this.#skipString(at);
      const key: unknown = JSON.parse(this.#bytes.toString('utf8', at, keyEnd));
      // Behind the key a colon.
      const value = this.#skipSpace(this.#skipSpace(keyEnd) + 1);
      if (key === name) found = value;
      at = this.#next(value);
    }
    return found;
  }

  #element(start: number, index: number): number | undefined {
    if (this.#bytes[start] !== OPEN_BRACKET) return undefined;
    let at = this.#skipSpace(start + 1);
    for (let i = 0; i < index && at < this.#bytes.byteLength; i++) at = this.#next(at);
    return at < this.#bytes.byteLength && this.#bytes[at] !== CLOSE_BRACKET ? at : undefined;
  }

  /** What stands behind a value and its comma. */
  #next(value: number): number {
    const at = this.#skipSpace(this.#skipValue(value));
    return this.#bytes[at] === COMMA ? this.#skipSpace(at + 1) : at;
  }

  #skipSpace(start: number): number {
    let at = start;
    while (at < this.#bytes.byteLength && (this.#bytes[at] ?? 0) <= SPACE) at += 1;
    return at;
  }

  #skipValue(start: number): number {
    const first = this.#bytes[start];
    if (first === QUOTE) return this.#skipString(start);
    if (first !== OPEN_BRACKET && first !== OPEN_BRACE) return this.#skipWord(start);
    let depth = 0;
    let at = start;
    while (at < this.#bytes.byteLength) {
      const byte = this.#bytes[at];
      if (byte === QUOTE) {
        at = this.#skipString(at);
        continue;
      }
      at += 1;
      if (byte === OPEN_BRACKET || byte === OPEN_BRACE) depth += 1;
      else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) {
        depth -= 1;
        if (depth === 0) break;
      }
    }
    return at;
  }

  /** A number, true, false or null: up to what can't belong to it. */
  #skipWord(start: number): number {
    let at = start;
    for (; at < this.#bytes.byteLength; at++) {
      const byte = this.#bytes[at] ?? 0;
      if (byte <= SPACE || byte === COMMA || byte === CLOSE_BRACKET || byte === CLOSE_BRACE) break;
    }
    return at;
  }

  #skipString(start: number): number {
    let at = start + 1;
    while (at < this.#bytes.byteLength && this.#bytes[at] !== QUOTE) {
      at += this.#bytes[at] === BACKSLASH ? 2 : 1;
    }
    return at + 1;
  }
}
