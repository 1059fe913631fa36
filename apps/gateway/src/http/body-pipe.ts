import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import { broken, type Coding, codingOf, type Decoder, newDecoder } from './inflate.js';

/**
 * Passes a body on as it comes, decoded as its `Content-Encoding` says, and takes no more from its client than `sink`
 * has taken. For bodies that are too large to be held; the others are read by `readBody`.
 */
export class BodyPipe {
  /** Settles when all of it is in `sink`, which is not ended, or with why it never will be. */
  readonly done: Promise<void>;
  readonly #req: IncomingMessage;
  readonly #sink: Writable;
  readonly #maxBytes: number;
  readonly #coding: Coding | undefined;
  #decoder: Decoder | undefined;
  #received = 0;
  #passed = 0;
  #isOver = false;
  #resolve: () => void = () => undefined;
  #reject: (error: MillraceError) => void = () => undefined;
  /** Whoever was held up goes on. */
  readonly #onDrain = (): void => {
    (this.#decoder ?? this.#req).resume();
  };

  /**
   * `done` rejects with MillraceError `body_too_large`, `invalid_encoding`, and `cancelled` when the client goes away.
   * @param maxBytes of the body as it comes, and as it is decoded.
   * @throws MillraceError `unsupported_media_type`, `body_too_large`: then nothing was read.
   */
  constructor(req: IncomingMessage, sink: Writable, maxBytes: number) {
    this.#req = req;
    this.#sink = sink;
    this.#maxBytes = maxBytes;
    this.#coding = codingOf(req);
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw this.#tooLarge();
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever waits for it hears of it; nobody may, yet.
    this.done.catch(() => undefined);
    sink.on('drain', this.#onDrain);
    req.on('error', (cause) => this.#fail(new MillraceError('cancelled', undefined, {}, { cause })));
    req.on('data', (chunk: Buffer) => this.#take(chunk));
    req.on('end', () => this.#end());
  }

  /** Passes on nothing more. What still comes is read and dropped, so that the client gets to read its answer. */
  stop(): void {
    this.#isOver = true;
    this.#sink.off('drain', this.#onDrain);
    this.#decoder?.removeAllListeners('data').removeAllListeners('end').destroy();
    this.#req.resume();
  }

  #take(chunk: Buffer): void {
    this.#received += chunk.byteLength;
    const isTooMuch = this.#received > this.#maxBytes;
    if (this.#isOver) {
      if (isTooMuch) this.#req.destroy();
      return;
    }
    if (isTooMuch) this.#fail(this.#tooLarge());
    else if (this.#coding === undefined) this.#pass(chunk, this.#req);
    else if (!this.#decoderOf(this.#coding, chunk[0]).write(chunk)) this.#req.pause();
  }

  #pass(chunk: Buffer, from: Readable): void {
    if (this.#isOver) return;
    this.#passed += chunk.byteLength;
    if (this.#passed > this.#maxBytes) this.#fail(this.#tooLarge());
    else if (!this.#sink.write(chunk)) from.pause();
  }

  #end(): void {
    if (this.#isOver) return;
    if (this.#coding === undefined) this.#succeed();
    else this.#decoderOf(this.#coding, undefined).end();
  }

  #decoderOf(coding: Coding, first: number | undefined): Decoder {
    if (this.#decoder) return this.#decoder;
    const decoder = newDecoder(coding, first);
    this.#decoder = decoder;
    decoder.on('data', (chunk: Buffer) => this.#pass(chunk, decoder));
    decoder.on('drain', () => this.#req.resume());
    decoder.on('error', () => this.#fail(broken(coding)));
    decoder.on('end', () => {
      // It ends by itself before the body does when more comes behind the coded data.
      if (this.#req.complete && decoder.bytesWritten === this.#received) this.#succeed();
      else this.#fail(broken(coding));
    });
    return decoder;
  }

  #succeed(): void {
    this.#isOver = true;
    this.#sink.off('drain', this.#onDrain);
    this.#resolve();
  }

  #fail(error: MillraceError): void {
    if (this.#isOver) return;
    this.stop();
    this.#reject(error);
  }

  #tooLarge(): MillraceError {
    return new MillraceError('body_too_large', `The body is larger than ${this.#maxBytes} bytes.`, {
      field: 'body',
    });
  }
}
