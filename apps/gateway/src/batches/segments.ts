import type { LineText } from './batch-lines.js';
import type { Segment } from './batch-record.js';

/** What is worth a write. */
const PIECE_BYTES = 256 * 1024;
const NOTHING = Buffer.alloc(0);

/** Gathers the lines of one file until they are written as its next object. */
export class SegmentBuffer {
  readonly #prefix: string;
  readonly #epoch: number;
  /** Full ones; lines go on from one to the next. */
  #pieces: Buffer[] = [];
  #piece: Buffer = NOTHING;
  /** Where in the last piece the next line begins. */
  #at = 0;
  #bytes = 0;
  #next: number;

  /** @param next number of the next object. @param epoch of the runner: what an older one writes has other keys. */
  constructor(fileId: string, next: number, epoch: number) {
    this.#prefix = segmentPrefix(fileId);
    this.#next = next;
    this.#epoch = epoch;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a line: its parts, one behind the other, the line end among them. */
  add(line: LineText): void {
    for (const part of line) {
      // One UTF-16 unit takes at most three bytes of UTF-8.
      const most = typeof part === 'string' ? part.length * 3 : part.byteLength;
      if (this.#at + most > this.#piece.byteLength) this.#turn(most);
      const bytes =
        typeof part === 'string' ? this.#piece.write(part, this.#at) : part.copy(this.#piece, this.#at);
      this.#at += bytes;
      this.#bytes += bytes;
    }
  }

  /** Takes what was gathered, for the store; undefined where that is nothing. */
  take(): { segment: Segment; pieces: readonly Buffer[] } | undefined {
    if (this.#bytes === 0) return undefined;
    const key = `${this.#prefix}${String(this.#next).padStart(6, '0')}-${this.#epoch}`;
    this.#turn(0);
    const taken = { segment: { key, bytes: this.#bytes }, pieces: this.#pieces };
    this.#pieces = [];
    this.#bytes = 0;
    this.#next += 1;
    return taken;
  }

  /** Ends a piece and begins one that has room for `bytes`. */
  #turn(bytes: number): void {
    if (this.#at > 0) this.#pieces.push(this.#piece.subarray(0, this.#at));
    this.#piece = bytes > 0 ? Buffer.allocUnsafeSlow(Math.max(bytes, PIECE_BYTES)) : NOTHING;
    this.#at = 0;
  }
}

/** Objects of a file have keys that begin so. */
export function segmentPrefix(fileId: string): string {
  return `files/${fileId}/`;
}
