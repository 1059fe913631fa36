import type { IncomingMessage } from 'node:http';
import { MillraceError } from '@millrace/shared';
import { codingOf, DECODER_BYTES, type Inflating, inflate } from './inflate.js';

const BODY = { field: 'body' };
/** Bodies that are being read are soon read. */
const RETRY_SECONDS = 1;
const BINARY_TYPE = /^application\/octet-stream *;? *$/i;
const LINES_TYPE = /^application\/(?:x-ndjson|jsonl) *(?:; *charset *= *"?utf-8"? *)?;? *$/i;
const JSON_TYPE = /^application\/json *(?:; *charset *= *"?utf-8"? *)?;? *$/i;

/**
 * Checks that a body claims to be plain UTF-8 JSON.
 * @throws MillraceError `unsupported_media_type`.
 */
export function requireJsonType(req: IncomingMessage): void {
  const type = req.headers['content-type'];
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new MillraceError(
      'unsupported_media_type',
      'The header Content-Type must be application/json, in UTF-8.',
      { field: 'Content-Type' },
    );
  }
}

/** Whether a body claims to be lines of UTF-8 JSON. */
export function isLines(req: IncomingMessage): boolean {
  const type = req.headers['content-type'];
  return type !== undefined && LINES_TYPE.test(type);
}

/**
 * For bodies of JSON, of bytes, or of both. No type at all is taken too: widespread clients send none. A browser
 * could be made to send that without asking us first, but it says that it is one.
 * @throws MillraceError `unsupported_media_type`.
 */
export function requireJsonOrBytes(req: IncomingMessage): void {
  const type = req.headers['content-type'];
  const known =
    type === undefined ? req.headers.origin === undefined : JSON_TYPE.test(type) || BINARY_TYPE.test(type);
  if (!known) {
    throw new MillraceError(
      'unsupported_media_type',
      'The header Content-Type must be application/json, in UTF-8, or application/octet-stream.',
      { field: 'Content-Type' },
    );
  }
}

/** The bytes of all bodies that are being read in a gateway: clients that send slowly add up. */
export class BodyBytes {
  readonly most: number;
  held = 0;

  constructor(most: number) {
    this.most = most;
  }
}

/** A body is given its whole room once this share of what was announced has come. */
const TRUSTED_SHARE = 1 / 4;

/**
 * Bytes of one body as they come. A client only announces a length: room for all of it is made when a good part
 * has come, so that a large body is neither held twice nor announced for nothing.
 */
class Gathering {
  readonly #announced: number;
  #chunks: Buffer[] = [];
  #whole: Buffer | undefined;
  #total = 0;

  constructor(announced: number) {
    this.#announced = announced;
  }

  /** Bytes that it takes up. */
  get held(): number {
    return this.#whole?.byteLength ?? this.#total;
  }

  get total(): number {
    return this.#total;
  }

  add(chunk: Buffer): void {
    if (this.#whole) chunk.copy(this.#whole, this.#total);
    else this.#chunks.push(chunk);
    this.#total += chunk.byteLength;
    const grown = this.#chunks.length > 1 && this.#total < this.#announced;
    if (grown && !this.#whole && this.#total >= this.#announced * TRUSTED_SHARE) {
      this.#whole = Buffer.allocUnsafeSlow(this.#announced);
      let at = 0;
      for (const each of this.#chunks) at += each.copy(this.#whole, at);
      this.#chunks = [];
    }
  }

  end(): Buffer {
    if (this.#whole) return this.#whole.subarray(0, this.#total);
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks, this.#total);
  }
}

/**
 * Reads a whole body of at most `maxBytes`, whatever its headers claim; the one way for every door. A body in gzip or
 * deflate (`Content-Encoding`) is decoded, and what comes out of it is what counts.
 * @param all counts it among those that are read at the same time.
 * @throws MillraceError `body_too_large`; `queue_full` when all together are; `unsupported_media_type`,
 * `invalid_encoding`; `cancelled` when the client goes away in the middle.
 */
export function readBody(req: IncomingMessage, maxBytes: number, all?: BodyBytes): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // What is thrown here rejects.
    const coding = codingOf(req);
    const announced = Number(req.headers['content-length'] ?? 0);
    const body = new Gathering(coding ? 0 : announced);
    const beside = coding ? DECODER_BYTES : 0;
    let inflating: Inflating | undefined;
    let counted = 0;
    const count = (bytes: number): void => {
      if (all) all.held += bytes - counted;
      counted = bytes;
    };
    const refuse = (error: MillraceError): void => {
      inflating?.stop();
      // What still comes is read and dropped, so that the client gets to read the answer.
      req.removeAllListeners('data').resume();
      count(0);
      reject(error);
    };
    const tooLarge = (): void =>
      refuse(new MillraceError('body_too_large', `The body is larger than ${maxBytes} bytes.`, BODY));
    const take = (chunk: Buffer): void => {
      body.add(chunk);
      count(body.held + beside);
      if (body.total > maxBytes) tooLarge();
      else if (all && all.held > all.most) {
        refuse(new MillraceError('queue_full', undefined, { retryAfterSeconds: RETRY_SECONDS }));
      }
    };
    const done = (): void => {
      count(0);
      resolve(body.end());
    };
    req.on('error', (cause) => {
      inflating?.stop();
      count(0);
      reject(new MillraceError('cancelled', undefined, {}, { cause }));
    });
    if (announced > maxBytes) {
      tooLarge();
    } else if (coding) {
      count(beside);
      inflating = inflate(req, coding, maxBytes, { take, done, refuse, tooLarge });
    } else {
      req.on('data', take);
      req.on('end', done);
    }
  });
}
