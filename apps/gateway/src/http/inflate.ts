import type { IncomingMessage } from 'node:http';
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import { MillraceError } from '@millrace/shared';

type Coding = 'gzip' | 'deflate';
type Decoder = ReturnType<typeof createGunzip>;

/** What `Content-Encoding` may name; brotli isn't here: its decoder keeps up to 16 MiB of the body a second time. */
const CODINGS: Readonly<Record<string, Coding>> = { gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate' };
/** The codings as `Accept-Encoding` lists them, which an answer says that refuses another. */
export const ACCEPTED_CODINGS = 'gzip, deflate';
/** About what a decoder takes beside the bytes that come out of it: its window, its state, its piece of output. */
export const DECODER_BYTES = 64 * 1024;
const ZLIB_METHOD = 8;

/** Where the bytes of a body go that is decoded. */
export interface BodySink {
  take(chunk: Buffer): void;
  done(): void;
  /** Ends the reading; the decoder is to be stopped. */
  refuse(error: MillraceError): void;
  /** The same for a coded body over the limit. */
  tooLarge(): void;
}

/**
 * The one coding of a body; undefined when it has none.
 * @throws MillraceError `unsupported_media_type`.
 */
export function codingOf(req: IncomingMessage): Coding | undefined {
  const header = req.headers['content-encoding'];
  if (header === undefined) return undefined;
  const name = header.trim().toLowerCase();
  if (name === '' || name === 'identity') return undefined;
  const coding = Object.hasOwn(CODINGS, name) ? CODINGS[name] : undefined;
  if (coding) return coding;
  throw new MillraceError(
    'unsupported_media_type',
    `The header Content-Encoding must be left out or be one of ${ACCEPTED_CODINGS}.`,
    { field: 'Content-Encoding' },
  );
}

/** A body that is being decoded. */
export interface Inflating {
  /** Lets nothing more out, and soon takes nothing more in. */
  pause(): void;
  resume(): void;
  stop(): void;
}

/**
 * Decodes a body piece by piece, and takes no more from its client than the sink has taken.
 * @param maxBytes of the coded body: one that says nothing in many bytes would otherwise never end.
 */
export function inflate(req: IncomingMessage, coding: Coding, maxBytes: number, sink: BodySink): Inflating {
  let received = 0;
  let decoder: Decoder | undefined;
  const start = (first: number | undefined): Decoder => {
    const started = newDecoder(coding, first);
    started.on('data', (chunk: Buffer) => sink.take(chunk));
    started.on('drain', () => req.resume());
    started.on('error', () => sink.refuse(broken(coding)));
    started.on('end', () => {
      // It ends by itself before the body does when more comes behind the coded data.
      if (req.complete && started.bytesWritten === received) sink.done();
      else sink.refuse(broken(coding));
    });
    return started;
  };
  req.on('data', (chunk: Buffer) => {
    received += chunk.byteLength;
    if (received > maxBytes) {
      sink.tooLarge();
      return;
    }
    decoder ??= start(chunk[0]);
    if (!decoder.write(chunk)) req.pause();
  });
  req.on('end', () => {
    decoder ??= start(undefined);
    decoder.end();
  });
  return {
    pause: () => void decoder?.pause(),
    resume: () => void decoder?.resume(),
    stop: () => void decoder?.removeAllListeners('data').removeAllListeners('end').destroy(),
  };
}

/** `deflate` is zlib's format by RFC 9110; some clients send it bare, which the first byte tells. */
function newDecoder(coding: Coding, first: number | undefined): Decoder {
  if (coding === 'gzip') return createGunzip();
  return first === undefined || (first & 0x0f) === ZLIB_METHOD ? createInflate() : createInflateRaw();
}

function broken(coding: Coding): MillraceError {
  return new MillraceError(
    'invalid_encoding',
    `The body is not valid ${coding}, which the header Content-Encoding says it is.`,
    { field: 'body' },
  );
}
