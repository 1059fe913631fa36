const NEWLINE = 0x0a;
const RETURN = 0x0d;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const NOTHING = Buffer.alloc(0);

/** A line of a stream. */
export interface Line {
  /** 1 for the first of the stream. */
  number: number;
  /** Without its end (LF or CRLF); absent for a line that is too long, of which nothing was held. */
  bytes?: Buffer;
  /** Offset in the stream behind the line and its end: where the next one begins. */
  end: number;
}

/** Where in a stream to begin: behind how many lines, and at which offset. */
export interface LinePlace {
  number: number;
  end: number;
}

export const STREAM_START: LinePlace = { number: 0, end: 0 };

/**
 * Cuts a stream of bytes into lines, in bounded memory: of a line longer than `maxBytes` only its being there is told.
 * What follows the last line end is a line too, unless it is nothing. A byte order mark at the start is skipped.
 * @param from the place of the stream's first byte, where it is not a file's beginning.
 */
export async function* splitLines(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  from: LinePlace = STREAM_START,
): AsyncGenerator<Line, void, undefined> {
  const splitter = new LineSplitter(maxBytes, from);
  for await (const chunk of source) yield* splitter.push(chunk);
  yield* splitter.end();
}

/** The same for whoever is handed the stream's pieces. */
export class LineSplitter {
  readonly #maxBytes: number;
  #number: number;
  /** Offset behind what was pushed. */
  #offset: number;
  readonly #start: number;
  /** What has come of a line whose end has not. */
  #pieces: Buffer[] = [];
  #held = 0;
  /** Whether that line is too long already. */
  #dropping = false;
  #begun = false;

  constructor(maxBytes: number, { number, end }: LinePlace) {
    this.#maxBytes = maxBytes;
    this.#number = number;
    this.#offset = end;
    this.#start = end;
  }

  /** Bytes that are held of a line whose end has not come. */
  get held(): number {
    return this.#dropping ? 0 : this.#held;
  }

  *push(chunk: Uint8Array): Generator<Line, void, undefined> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = 0;
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, at);
      if (newline < 0) break;
      this.#add(bytes.subarray(at, newline));
      at = newline + 1;
      yield this.#take(this.#offset + at);
    }
    if (at < bytes.byteLength) this.#add(bytes.subarray(at));
    this.#offset += bytes.byteLength;
  }

  *end(): Generator<Line, void, undefined> {
    if (this.#begun) yield this.#take(this.#offset);
  }

  #add(piece: Buffer): void {
    this.#begun ||= piece.byteLength > 0;
    if (this.#dropping) return;
    this.#held += piece.byteLength;
    // The return of CRLF is not the line's.
    if (this.#held > this.#maxBytes + 1) {
      this.#dropping = true;
      this.#pieces = [];
    } else if (piece.byteLength > 0) {
      this.#pieces.push(piece);
    }
  }

  #take(end: number): Line {
    this.#number += 1;
    const [only = NOTHING] = this.#pieces;
    let bytes = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, this.#held) : only;
    if (bytes.at(-1) === RETURN) bytes = bytes.subarray(0, -1);
    if (this.#number === 1 && this.#start === 0 && bytes.subarray(0, BOM.length).equals(BOM)) {
      bytes = bytes.subarray(BOM.length);
    }
    const tooLong = this.#dropping || bytes.byteLength > this.#maxBytes;
    this.#pieces = [];
    this.#held = 0;
    this.#dropping = false;
    this.#begun = false;
    return { number: this.#number, ...(tooLong ? {} : { bytes }), end };
  }
}
