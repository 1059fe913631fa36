import type { IncomingMessage } from 'node:http';
import { MillraceError } from '@millrace/shared';
import { codingOf, inflate } from './inflate.js';

/** Where a body goes that is read piece by piece. */
export interface PieceSink {
  /** Takes a piece, decoded. */
  take(piece: Buffer): void;
  /** The body is over. */
  done(): void;
  /** The body can't be read on: `invalid_encoding`, or `cancelled` for a client that went away. */
  refuse(error: MillraceError): void;
}

/** A body that is being read; who pauses it lets its client wait. */
export interface BodyPieces {
  pause(): void;
  resume(): void;
  /** Reads no more: what still comes is dropped, so that the client gets to read its answer. */
  drop(): void;
}

/**
 * Reads a body of any length in pieces, decoded where its headers say that it is coded.
 * @throws MillraceError `unsupported_media_type`.
 */
export function readPieces(req: IncomingMessage, sink: PieceSink): BodyPieces {
  const coding = codingOf(req);
  req.on('error', (cause) => sink.refuse(new MillraceError('cancelled', undefined, {}, { cause })));
  const drop = (): void => {
    req.removeAllListeners('data').resume();
  };
  if (!coding) {
    req.on('data', (piece: Buffer) => sink.take(piece));
    req.on('end', () => sink.done());
    return { pause: () => req.pause(), resume: () => req.resume(), drop };
  }
  const inflating = inflate(req, coding, Number.POSITIVE_INFINITY, {
    take: (piece) => sink.take(piece),
    done: () => sink.done(),
    refuse: (error) => sink.refuse(error),
    tooLarge: () => undefined,
  });
  return {
    pause: () => inflating.pause(),
    resume: () => inflating.resume(),
    drop: () => {
      inflating.stop();
      drop();
    },
  };
}
