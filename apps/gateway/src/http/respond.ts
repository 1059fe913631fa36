import type { Stamps } from '@millrace/shared';
import { spans } from '@millrace/shared';
import type { Response } from 'express';
import { type AnswerCoding, compress } from './compression.js';
import { contextOf, type HttpContext } from './context.js';

/** Answers that say "try again" say when; who knows better sets the header. */
const DEFAULT_RETRY_SECONDS = '1';
const NONE: readonly string[] = [];
const VARY: readonly string[] = ['Vary', 'Accept-Encoding'];
const CODED: Readonly<Record<AnswerCoding, readonly string[]>> = {
  gzip: [...VARY, 'Content-Encoding', 'gzip'],
  deflate: [...VARY, 'Content-Encoding', 'deflate'],
};
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

/**
 * Sends a whole answer, compressed where that was asked for and pays. `timings` become the Server-Timing header.
 * Every answer with 429 or 503 has Retry-After.
 */
export function respond(res: Response, answer: Answer, timings: readonly Timing[]): void {
  // Given up meanwhile.
  if (res.headersSent) return;
  const { body, contentType } = answer;
  const { compression } = contextOf(res).sending;
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  const coding = compression.codingOf(res.req.headers['accept-encoding'], contentType, bytes);
  if (coding === undefined) {
    send(res, answer, bytes, timings, compression.varies(contentType, bytes) ? VARY : NONE);
    return;
  }
  void compress(body, coding).then((coded) => {
    if (res.destroyed) return;
    if (coded) send(res, { ...answer, body: coded }, coded.byteLength, timings, CODED[coding]);
    else send(res, answer, bytes, timings, VARY);
  });
}

function send(
  res: Response,
  answer: Answer,
  bytes: number,
  timings: readonly Timing[],
  more: readonly string[],
): void {
  const { status, contentType, body } = answer;
  const context = contextOf(res);
  const headers = commonHeaders(context, timings);
  // Of a body that isn't sent again nothing is said: its length would have to be that of the whole.
  if (status !== 304) headers.push('Content-Type', contentType, 'Content-Length', String(bytes));
  if (more.length > 0) headers.push(...more);
  if (answer.headers) headers.push(...answer.headers);
  if ((status === 429 || status === 503) && !res.hasHeader('Retry-After')) {
    headers.push('Retry-After', DEFAULT_RETRY_SECONDS);
  }
  // Asked now: draining may have begun while the request waited.
  if (context.closesConnection) headers.push('Connection', 'close');
  res.writeHead(status, headers);
  // As many bytes as characters is ASCII: copied to the socket as it is, where UTF-8 would be encoded.
  if (bytes === body.length) res.end(body, 'latin1');
  else res.end(body);
  // What the kernel did not take waits in our memory.
  context.sending.unread.watch(res, bytes);
}

/** Headers of every answer that has a body, name and value in turn. */
export function commonHeaders(context: HttpContext, timings: readonly Timing[]): string[] {
  let serverTiming = '';
  for (const { name, ms } of timings) serverTiming += `${serverTiming === '' ? '' : ', '}${name};dur=${ms}`;
  return [...context.idHeaders, ...context.securityHeaders, 'Server-Timing', serverTiming];
}

/** Sends an answer of headers alone, 204. */
export function respondNothing(res: Response, own: readonly string[]): void {
  const context = contextOf(res);
  const headers = [...context.idHeaders, ...context.securityHeaders, ...own];
  if (context.closesConnection) headers.push('Connection', 'close');
  res.writeHead(204, headers).end();
}

/** Sends a small JSON answer that went through no queue. `now`: epoch ms of Redis's clock. */
export function respondJson(res: Response, status: number, body: object, now: number): void {
  const timings = timingsOf({}, contextOf(res).received, now);
  respond(res, { status, contentType: JSON_UTF8, body: JSON.stringify(body) }, timings);
}
