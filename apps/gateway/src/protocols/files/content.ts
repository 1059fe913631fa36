import { createHash } from 'node:crypto';
import type { RedisClock } from '@millrace/shared';
import type { Request, Response } from 'express';
import type { FileRecord } from '../../files/file-record.js';
import type { Files } from '../../files/files.js';
import { contextOf } from '../../http/context.js';
import { rangeOf } from '../../http/range.js';
import { respond, timingsOf } from '../../http/respond.js';
import { respondStream } from '../../http/respond-stream.js';

const BYTES_TYPE = 'application/octet-stream';
/** Whether it is compressed is decided as of text, which lines of JSON are. */
const TEXT_TYPE = 'text/plain';
/** Names of files that are compressed already. */
const COMPRESSED = /\.(gz|tgz|zip|zst|zstd|br|bz2|xz|7z)$/i;

/** Answers with the bytes of a file, or a range of them. @throws MillraceError `range_not_satisfiable`. */
export async function sendContent(
  { files, clock }: { files: Files; clock: RedisClock },
  record: FileRecord,
  req: Request,
  res: Response,
): Promise<void> {
  const { bytes, filename } = record;
  const { compression } = contextOf(res).sending;
  const etag = etagOf(record);
  // Sets a type by the name as well, which would have browsers show what anybody has uploaded.
  res.attachment(filename).removeHeader('Content-Type');
  const headers = ['Cache-Control', 'private, no-cache', 'Accept-Ranges', 'bytes'];
  const type = COMPRESSED.test(filename) ? BYTES_TYPE : TEXT_TYPE;
  if (compression.varies(type, bytes)) headers.push('Vary', 'Accept-Encoding');
  const ranged = req.headers.range !== undefined;
  const coding = ranged ? undefined : compression.codingOf(req.headers['accept-encoding'], type, bytes);
  // Coded, it is another sequence of bytes.
  const own = coding === undefined ? etag : `${etag.slice(0, -1)}-${coding}"`;
  headers.push('ETag', own);
  if (isKnown(req.headers['if-none-match'], [etag, own])) {
    const answer = { status: 304, contentType: BYTES_TYPE, body: '', headers };
    respond(res, answer, timingsOf({}, contextOf(res).received, clock.now()));
    return;
  }
  const range = ranged && isSame(req.headers['if-range'], etag) ? readRange(req, res, bytes) : undefined;
  const { start, end } = range ?? { start: 0, end: bytes };
  if (range) headers.push('Content-Range', `bytes ${start}-${end - 1}/${bytes}`);
  const answer = {
    status: range ? 206 : 200,
    headers: [...headers, 'Content-Type', BYTES_TYPE],
    bytes: end - start,
    coding,
    open: () => files.open(record, start, end),
  };
  await respondStream(res, answer, timingsOf({}, contextOf(res).received, clock.now()));
}

function readRange(req: Request, res: Response, bytes: number): { start: number; end: number } | undefined {
  try {
    return rangeOf(req.headers.range, bytes);
  } catch (error) {
    res.removeHeader('Content-Disposition');
    res.setHeader('Content-Range', `bytes */${bytes}`);
    throw error;
  }
}

/** Changes with the bytes: a file that was deleted and sent again under one Idempotency-Key keeps its id. */
function etagOf({ id, sha256, createdAt, bytes }: FileRecord): string {
  const said = JSON.stringify(sha256 ?? [id, createdAt, bytes]);
  return `"${createHash('sha256').update(said).digest('base64url').slice(0, 22)}"`;
}

/** `If-None-Match` (RFC 9110, section 13.1.2) compares weakly. */
function isKnown(header: string | undefined, tags: readonly string[]): boolean {
  const known = header?.match(/"[^"]*"|\*/g) ?? [];
  return known.some((tag) => tag === '*' || tags.includes(tag));
}

/** `If-Range` (section 13.1.5) compares strongly; of dates none is told. */
function isSame(header: string | string[] | undefined, etag: string): boolean {
  return header === undefined || header === etag;
}
