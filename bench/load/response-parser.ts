import type { Wire } from './wire.js';

const HEAD_END = '\r\n\r\n';

/**
 * Finds the end of one HTTP/1.1 answer at a time, with as little work as possible: of its head the status
 * and how the body ends, of its body nothing unless it is to be kept. There is no pipelining, so bytes behind
 * the end are a fault.
 */
export class ResponseParser implements Wire {
  status = 0;
  /** The server closes the connection behind this answer. */
  closes = false;
  #keep = false;
  #head = '';
  #left = -1;
  #chunked = false;
  #chunks: Buffer[] = [];

  /** Milliseconds from received to answered, as the server tells in `Server-Timing`. */
  get serverMs(): number | undefined {
    const total = /\r\nserver-timing:[^\r]*\btotal;dur=([\d.]+)/.exec(this.#head)?.[1];
    return total === undefined ? undefined : Number(total);
  }

  /** Begins a new answer; its body is kept only if asked for. */
  expect(keep: boolean): void {
    this.status = 0;
    this.closes = false;
    this.#keep = keep;
    this.#head = '';
    this.#left = -1;
    this.#chunked = false;
    this.#chunks = [];
  }

  /** @returns whether the answer is complete. @throws Error on what this parser can't follow. */
  feed(bytes: Buffer): boolean {
    let from = 0;
    if (this.status === 0) {
      const end = this.#feedHead(bytes);
      if (end < 0) return false;
      from = end;
    }
    if (this.#chunked) {
      this.#chunks.push(Buffer.from(bytes.subarray(from)));
      const body = dechunk(Buffer.concat(this.#chunks));
      if (!body) return false;
      this.#chunks = [body];
      return true;
    }
    const got = bytes.byteLength - from;
    if (got > this.#left) throw new Error('the server sent more than one answer');
    if (this.#keep) this.#chunks.push(Buffer.from(bytes.subarray(from)));
    this.#left -= got;
    return this.#left === 0;
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** @returns where the body begins in `bytes`, or -1 while the head is incomplete. */
  #feedHead(bytes: Buffer): number {
    const before = this.#head.length;
    const text = this.#head + bytes.toString('latin1', 0, 16_384);
    const end = text.indexOf(HEAD_END);
    if (end < 0) {
      this.#head = text;
      return -1;
    }
    const head = text.slice(0, end + 2).toLowerCase();
    this.#head = head;
    this.status = Number(head.slice(9, 12));
    this.closes = head.includes('\r\nconnection: close\r\n');
    this.#chunked = head.includes('\r\ntransfer-encoding: chunked\r\n');
    const at = head.indexOf('\r\ncontent-length:');
    if (at >= 0) this.#left = Number.parseInt(head.slice(at + 17), 10);
    if (this.#left < 0 && !this.#chunked) throw new Error('an answer without a length');
    return end + HEAD_END.length - before;
  }
}

/** The body of a chunked answer; undefined while it is incomplete. */
export function dechunk(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error('a chunk without a size');
    const from = lineEnd + 2;
    if (size === 0) return bytes.indexOf('\r\n', from) >= 0 ? Buffer.concat(parts) : undefined;
    if (from + size + 2 > bytes.byteLength) return undefined;
    parts.push(bytes.subarray(from, from + size));
    at = from + size + 2;
  }
}
