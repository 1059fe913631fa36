import { MillraceApiError, MillraceConnectionError } from './errors.js';

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 8000;

/** Refused at the door: nothing has run. */
const REFUSED = new Set([429, 503]);
/** Somebody on the way gave up waiting: it may have run. */
const UNKNOWN = new Set([502, 504]);

/**
 * Whether another try may succeed, and does no harm.
 * @param repeatable the call may run twice without harm: it only reads, or carries an `Idempotency-Key`.
 */
export function mayRetry(error: unknown, repeatable: boolean): boolean {
  if (error instanceof MillraceApiError) {
    return REFUSED.has(error.status) || (repeatable && UNKNOWN.has(error.status));
  }
  return error instanceof MillraceConnectionError && (repeatable || error.neverSent);
}

/**
 * How long to wait before another try, in ms. What the server asked for is never cut short, only lengthened
 * by up to the first backoff, so that those who were refused together don't come back together. Otherwise
 * exponential backoff with full jitter: anything from 0 to 250 ms, 500 ms, 1 s ... 8 s.
 * @param tries how many have failed, 1 at first.
 * @param random in [0, 1).
 */
export function backoffMs(tries: number, askedMs: number | undefined, random: number): number {
  if (askedMs !== undefined) return askedMs + random * FIRST_BACKOFF_MS;
  return random * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1));
}

/**
 * `Retry-After` (RFC 9110, section 10.2.3) in ms: a number of seconds, or a date. A date is compared with the
 * answer's own `Date` where it can be read, so that a clock that is off does no harm.
 * @param epochMs now, by this machine's clock.
 */
export function retryAfterMs(headers: Headers, epochMs: number): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const at = dateMs(value);
  if (at === undefined) return undefined;
  return Math.max(0, at - (dateMs(headers.get('date')) ?? epochMs));
}

/** An HTTP date begins with a day's name; `Date.parse` alone would read much that is none. */
function dateMs(value: string | null): number | undefined {
  if (!value || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value)) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}
