import { FRAME_HEAD, frame, huffman, literal, setting, string, windowUpdate } from './http2.js';
import type { Wire } from './wire.js';

/*
 * gRPC over HTTP/2 (RFC 9113) with as little work as possible, so that the generator is not what is measured:
 * requests are frames made beforehand, of answers only the message and `grpc-status` are looked at. Without a
 * dynamic header table, which the greeting forbids the server, equal headers are equal bytes.
 */

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const END_STREAM = 0x1;
const ACK = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;
const SETTINGS_HEADER_TABLE_SIZE = 1;
const SETTINGS_ENABLE_PUSH = 2;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;
const MOST_WINDOW = 2 ** 31 - 1;
const FIRST_WINDOW = 65_535;
/** The server may send so many bytes; room is given back once half of it is used. */
const WINDOW = MOST_WINDOW;
/** Length and a flag before each message. */
const MESSAGE_HEAD = 5;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const GREETING = Buffer.concat([
  PREFACE,
  frame(SETTINGS, 0, 0, [
    ...setting(SETTINGS_HEADER_TABLE_SIZE, 0),
    ...setting(SETTINGS_ENABLE_PUSH, 0),
    ...setting(SETTINGS_INITIAL_WINDOW_SIZE, MOST_WINDOW),
  ]),
  windowUpdate(WINDOW - FIRST_WINDOW),
]);

/** Statuses of HTTP that stand for those of gRPC. */
const STATUSES: Readonly<Record<string, number>> = {
  0: 200,
  1: 499,
  3: 400,
  4: 504,
  5: 404,
  8: 429,
  12: 501,
  14: 503,
  16: 401,
};
const UNKNOWN = 500;

/** The frames of one call: headers, then the message, both still of stream 0. */
export function grpcRequest(authority: string, path: string, message: Buffer): Buffer {
  const head = Buffer.alloc(MESSAGE_HEAD);
  head.writeUInt32BE(message.byteLength, 1);
  // Numbers of the static table: RFC 7541, appendix A. 0x83: POST, 0x86: http.
  const headers = Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(4, path),
    literal(1, authority),
    literal(31, 'application/grpc'),
    literal('te', 'trailers'),
  ]);
  return Buffer.concat([
    frame(HEADERS, END_HEADERS, 0, headers),
    frame(DATA, END_STREAM, 0, Buffer.concat([head, message])),
  ]);
}

export class GrpcWire implements Wire {
  readonly greeting = GREETING;
  readonly serverMs = undefined;
  status = 0;
  closes = false;
  #stream = -1;
  #keep = false;
  #data: Buffer[] = [];
  /** What of a frame has come. */
  #rest: Buffer = Buffer.alloc(0);
  #replies: Buffer[] = [];
  #received = 0;

  expect(keep: boolean): void {
    this.#stream += 2;
    this.#keep = keep;
    this.#data = [];
    this.status = 0;
  }

  framed(request: Buffer): Buffer {
    const frames = Buffer.from(request);
    const second = FRAME_HEAD + frames.readUIntBE(0, 3);
    frames.writeUInt32BE(this.#stream, 5);
    frames.writeUInt32BE(this.#stream, second + 5);
    return frames;
  }

  feed(bytes: Buffer): boolean {
    const all = this.#rest.byteLength === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    let complete = false;
    while (all.byteLength - at >= FRAME_HEAD) {
      const end = at + FRAME_HEAD + all.readUIntBE(at, 3);
      if (end > all.byteLength) break;
      if (this.#frame(all[at + 3] ?? 0, all[at + 4] ?? 0, all.subarray(at + FRAME_HEAD, end)))
        complete = true;
      at = end;
    }
    // The buffer of `bytes` is read into again.
    this.#rest = at === all.byteLength ? Buffer.alloc(0) : Buffer.from(all.subarray(at));
    return complete;
  }

  takeReply(): Buffer | undefined {
    if (this.#replies.length === 0) return undefined;
    const reply = Buffer.concat(this.#replies);
    this.#replies = [];
    return reply;
  }

  get body(): Buffer {
    return Buffer.concat(this.#data).subarray(MESSAGE_HEAD);
  }

  /** @returns whether it ends the answer. */
  #frame(type: number, flags: number, payload: Buffer): boolean {
    switch (type) {
      case DATA:
        this.#receive(payload.byteLength);
        if (this.#keep) this.#data.push(Buffer.from(payload));
        return false;
      case HEADERS:
        if ((flags & END_HEADERS) === 0 || flags & PADDED || flags & PRIORITY) {
          throw new Error('the server sent headers in a form that is not read here');
        }
        if ((flags & END_STREAM) === 0) return false;
        this.status = STATUSES[grpcStatusOf(payload)] ?? UNKNOWN;
        return true;
      case RST_STREAM:
        throw new Error('the server reset a stream');
      case GOAWAY:
        this.closes = true;
        return false;
      case SETTINGS:
        if ((flags & ACK) === 0) this.#replies.push(frame(SETTINGS, ACK, 0, []));
        return false;
      case PING:
        if ((flags & ACK) === 0) this.#replies.push(frame(PING, ACK, 0, payload));
        return false;
      default:
        return false;
    }
  }

  #receive(length: number): void {
    this.#received += length;
    if (this.#received < WINDOW / 2) return;
    this.#replies.push(windowUpdate(this.#received));
    this.#received = 0;
  }
}

/** "grpc-status" as the server may write it: plain, or in the Huffman code of RFC 7541, appendix B. */
const STATUS_NAMES = [string('grpc-status'), huffman('grpc-status')];

/** The status in a block of trailers. @throws Error where there is none. */
function grpcStatusOf(block: Buffer): string {
  for (const name of STATUS_NAMES) {
    const at = block.indexOf(name);
    if (at < 0) continue;
    // No number of one or two digits is shorter in Huffman's code: it is written plain.
    const from = at + name.byteLength + 1;
    return block.toString('latin1', from, from + (block[from - 1] ?? 0));
  }
  throw new Error('an answer without grpc-status');
}
