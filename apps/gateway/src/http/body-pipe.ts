import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import { readPieces } from './body-pieces.js';

/** A body on its way into a stream. */
export interface BodyPipe {
  /** Settles when all of it is in the stream, which is not ended, or with why it never will be. */
  readonly done: Promise<void>;
  /** Passes on nothing more. What still comes is dropped, so that the client gets to read its answer. */
  stop(): void;
}

/**
 * Passes a body on as it comes, decoded where it is coded, and takes no more from its client than `sink` has taken.
 * `done` rejects with MillraceError `body_too_large`, `invalid_encoding`, or `cancelled` when the client goes away.
 * @param maxBytes of the body as it comes, and as it is decoded: one that says nothing in many bytes would otherwise never
 * end.
 * @throws MillraceError `unsupported_media_type`, `body_too_large`: then nothing was read.
 */
export function pipeBody(req: IncomingMessage, sink: Writable, maxBytes: number): BodyPipe {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  let stop = (): void => undefined;
  const done = new Promise<void>((resolve, reject) => {
    let received = 0;
    let passed = 0;
    let isOver = false;
    const refuse = (error: MillraceError): void => {
      stop();
      reject(error);
    };
    // What is thrown here rejects.
    const pieces = readPieces(req, {
      take: (piece) => {
        passed += piece.byteLength;
        if (isOver) return;
        if (passed > maxBytes) refuse(tooLarge(maxBytes));
        else if (!sink.write(piece)) pieces.pause();
      },
      done: () => {
        isOver = true;
        sink.off('drain', resume);
        resolve();
      },
      refuse,
    });
    const resume = (): void => pieces.resume();
    sink.on('drain', resume);
    req.on('data', (chunk: Buffer) => {
      received += chunk.byteLength;
      if (received > maxBytes && !isOver) refuse(tooLarge(maxBytes));
    });
    stop = () => {
      if (isOver) return;
      isOver = true;
      sink.off('drain', resume);
      pieces.drop();
    };
  });
  return { done, stop: () => stop() };
}

function tooLarge(maxBytes: number): MillraceError {
  return new MillraceError('body_too_large', `The body is larger than ${maxBytes} bytes.`, { field: 'body' });
}
