import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createDeflate, createGzip } from 'node:zlib';
import type { Response } from 'express';
import type { AnswerCoding } from './compression.js';
import { contextOf } from './context.js';
import { commonHeaders, type Timing } from './respond.js';

/** The fastest, as for other answers. */
const OPTIONS = { level: 1 };
/**
 * A client that takes nothing of an answer for so long is given up, in ms. The kernel holds some MB for it and tells of
 * progress only when it has room again, so one that reads slowly seems to rest for minutes.
 */
const UNREAD_MS = 300_000;

/** An answer that is sent as it is read. */
export interface StreamedAnswer {
  status: number;
  /** Name and value in turn, without those that every answer has and those that tell of length and coding. */
  headers: readonly string[];
  /** Of what `open` gives, before any coding. */
  bytes: number;
  coding?: AnswerCoding | undefined;
  open(): Readable;
}

/**
 * Sends an answer no faster than its client reads it: no more of it is held than a piece, so it counts to no answers that
 * wait. What fails before the first byte is thrown, so that it is answered as an error; what fails later cuts the
 * connection as well, since its client must not take what it has for the whole.
 */
export async function respondStream(
  res: Response,
  { status, headers, bytes, coding, open }: StreamedAnswer,
  timings: readonly Timing[],
): Promise<void> {
  const isHead = res.req.method === 'HEAD';
  const source = isHead ? undefined : open();
  if (source) await untilReadable(source);
  const context = contextOf(res);
  const all = [...commonHeaders(context, timings), ...headers];
  if (coding === undefined) all.push('Content-Length', String(bytes));
  else all.push('Content-Encoding', coding);
  if (context.closesConnection) all.push('Connection', 'close');
  res.writeHead(status, all);
  if (!source) {
    res.end();
    return;
  }
  giveUpIdle(res);
  try {
    if (coding === undefined) await pipeline(source, res);
    else await pipeline(source, coding === 'gzip' ? createGzip(OPTIONS) : createDeflate(OPTIONS), res);
  } catch (error) {
    // The client went away: nobody is to be told.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

/** Until there is something to send, or it is known that there is nothing. */
function untilReadable(source: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    source.once('error', reject);
    source.once('readable', () => {
      source.off('error', reject);
      resolve();
    });
  });
}

/** Node.js tells progress from none, and sets the connection's usual idle time once the answer is out. */
function giveUpIdle(res: Response): void {
  if (res.socket) res.socket.setTimeout(UNREAD_MS);
  // It waits behind another answer of its connection.
  else res.once('socket', (socket) => socket.setTimeout(UNREAD_MS));
}
