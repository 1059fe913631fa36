import type { Stamps } from '@millrace/shared';
import { spans } from '@millrace/shared';
import type { Response } from 'express';
import { contextOf } from './context.js';

/** A client that reads nothing of a waiting answer for this long, in ms, is cut off. */
const UNREAD_MS = 10_000;
const JSON_UTF8 = 'application/json; charset=utf-8';

export interface Timing {
  name: string;
  ms: number;
}

/** An answer as it goes out, but for the headers that every one has. */
export interface Answer {
  status: number;
  contentType: string;
  body: string | Buffer;
  /** Headers that belong to the body, name and value in turn. */
  headers?: readonly string[] | undefined;
}

/** Milliseconds of each stage, and their total from received to `now` (epoch ms of Redis's clock). */
export function timingsOf(stamps: Stamps, received: number, now: number): Timing[] {
  const timings: Timing[] = spans(stamps);
  timings.push({ name: 'total', ms: Math.max(0, now - received) });
  for (const timing of timings) timing.ms = Math.round(timing.ms * 1000) / 1000;
  return timings;
}

/** Sends a whole answer. `timings` become the Server-Timing header. */
export function respond(res: Response, answer: Answer, timings: readonly Timing[]): void {
  const { status, contentType, body } = answer;
  const context = contextOf(res);
  let serverTiming = '';
  for (const { name, ms } of timings) serverTiming += `${serverTiming === '' ? '' : ', '}${name};dur=${ms}`;
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  const headers = [
    'X-Request-Id',
    context.requestId,
    ...context.securityHeaders,
    'Content-Type',
    contentType,
    'Content-Length',
    String(bytes),
    'Server-Timing',
    serverTiming,
  ];
  if (answer.headers) headers.push(...answer.headers);
  // Asked now: draining may have begun while the request waited.
  if (context.closesConnection) headers.push('Connection', 'close');
  res.writeHead(status, headers);
  // As many bytes as characters is ASCII: copied to the socket as it is, where UTF-8 would be encoded.
  if (bytes === body.length) res.end(body, 'latin1');
  else res.end(body);
  // What the kernel did not take waits in our memory: a client that stops reading must not hold it for long.
  // Node tells progress from none, and sets the connection's usual idle time once the answer is out.
  const { socket } = res;
  if (socket && socket.writableLength > 0) socket.setTimeout(UNREAD_MS);
}

/** Sends a small JSON answer that went through no queue. `now`: epoch ms of Redis's clock. */
export function respondJson(res: Response, status: number, body: object, now: number): void {
  const timings = timingsOf({}, contextOf(res).received, now);
  respond(res, { status, contentType: JSON_UTF8, body: JSON.stringify(body) }, timings);
}
