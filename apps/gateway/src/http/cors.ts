import type { IncomingHttpHeaders } from 'node:http';
import type { RequestHandler } from 'express';
import { contextOf } from './context.js';
import { respondNothing } from './respond.js';
import { API_HEADERS } from './security-headers.js';

const ANY = '*';
const METHODS = 'GET, HEAD, POST, DELETE, OPTIONS';
/** What scripts may read beside the few headers that they always may. */
const EXPOSED = [
  'X-Request-Id',
  'X-Millrace-Request-Id',
  'Server-Timing',
  'Retry-After',
  'Idempotency-Replayed',
  'Inference-Header-Content-Length',
  'Location',
  'Preference-Applied',
  'ETag',
  'Accept-Ranges',
  'Content-Range',
  'Content-Disposition',
  'Allow',
  'Accept-Encoding',
].join(', ');
/** How long a browser may keep what a preflight said, in seconds; browsers keep it no longer than that. */
const MAX_AGE_SECONDS = 7200;
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/;
const MAX_HEADER_NAMES = 2048;

/**
 * Lets scripts of these origins ask (CORS), at every address but those under `closed`. Keys travel in a header, so
 * cookies are never let in (`Access-Control-Allow-Credentials`), and any header may be sent: no ambient right hangs on
 * one.
 * @param origins as browsers write them, or `*` alone.
 */
export function cors(origins: readonly string[], closed: string): RequestHandler {
  const any = origins.includes(ANY);
  const allowed = new Map(
    origins.map((origin) => [
      origin,
      [...API_HEADERS, 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED],
    ]),
  );
  if (!any) for (const headers of allowed.values()) headers.push('Vary', 'Origin');
  const others: readonly string[] = [...API_HEADERS, 'Vary', 'Origin'];
  return (req, res, next) => {
    if (req.path === closed || req.path.startsWith(`${closed}/`)) {
      next();
      return;
    }
    const { origin } = req.headers;
    const headers = any ? allowed.get(ANY) : origin === undefined ? undefined : allowed.get(origin);
    contextOf(res).securityHeaders = headers ?? others;
    const isPreflight =
      req.method === 'OPTIONS' &&
      origin !== undefined &&
      req.headers['access-control-request-method'] !== undefined;
    if (!isPreflight || !headers) {
      next();
      return;
    }
    const asked = req.headers['access-control-request-headers'];
    const known = asked !== undefined && asked.length <= MAX_HEADER_NAMES && HEADER_NAMES.test(asked);
    respondNothing(res, [
      'Access-Control-Allow-Methods',
      METHODS,
      ...(known ? ['Access-Control-Allow-Headers', asked] : []),
      'Access-Control-Max-Age',
      String(MAX_AGE_SECONDS),
    ]);
  };
}

/**
 * Whether a page may have a form sent here: of no other origin than those whose scripts may ask. A browser sends a form
 * anywhere without asking first, so where no keys are asked for, any page that somebody opens could send one.
 */
export function maySendForm(
  { origin, host }: Pick<IncomingHttpHeaders, 'origin' | 'host'>,
  allowed: readonly string[],
): boolean {
  if (origin === undefined || allowed.includes(ANY) || allowed.includes(origin)) return true;
  return URL.canParse(origin) && new URL(origin).host === host;
}
