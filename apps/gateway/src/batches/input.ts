import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { MillraceError } from '@millrace/shared';

/** A file in gzip begins so (RFC 1952). */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const NEWLINE = 0x0a;

/** Opens the bytes of a file from an offset on. */
export type OpenInput = (start: number) => Readable;

/** The lines of a batch's input, packed in gzip or plain. */
export class BatchInput {
  readonly #open: OpenInput;
  readonly #packed: boolean;

  private constructor(open: OpenInput, packed: boolean) {
    this.#open = open;
    this.#packed = packed;
  }

  /** Looks at how the file begins. */
  static async open(open: OpenInput): Promise<BatchInput> {
    let head = Buffer.alloc(0);
    for await (const chunk of open(0)) {
      head = Buffer.concat([head, chunk as Buffer]);
      if (head.byteLength >= GZIP_MAGIC.length) break;
    }
    return new BatchInput(open, head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC));
  }

  /**
   * Its bytes, unpacked, from an offset on. Gzip can't be begun in the middle: it is unpacked from the start.
   * @throws MillraceError `invalid_encoding` while it is read.
   */
  async *bytes(from = 0): AsyncGenerator<Buffer, void, undefined> {
    if (!this.#packed) {
      yield* this.#open(from) as AsyncIterable<Buffer>;
      return;
    }
    const gunzip = createGunzip();
    // An error of either side is met where the bytes are read.
    pipeline(this.#open(0), gunzip, () => undefined);
    let at = 0;
    try {
      for await (const chunk of gunzip as AsyncIterable<Buffer>) {
        const skipped = Math.max(0, from - at);
        at += chunk.byteLength;
        if (skipped < chunk.byteLength) yield skipped === 0 ? chunk : chunk.subarray(skipped);
      }
    } catch (cause) {
      if (!isZlibError(cause)) throw cause;
      throw new MillraceError(
        'invalid_encoding',
        'The input file begins as gzip does, but is not valid gzip.',
        { field: 'input_file_id' },
        { cause },
      );
    }
  }

  /** How many lines it has; what follows the last line end is one too, unless it is nothing. */
  async countLines(signal: AbortSignal): Promise<number> {
    let lines = 0;
    let last = NEWLINE;
    for await (const chunk of this.bytes()) {
      signal.throwIfAborted();
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1;
      last = chunk.at(-1) ?? last;
    }
    return last === NEWLINE ? lines : lines + 1;
  }
}

function isZlibError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return code.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE';
}
