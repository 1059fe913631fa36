import type { IncomingHttpHeaders } from 'node:http';
import { MillraceError, PRIORITIES, type PriorityClass, type Settings } from '@millrace/shared';
import { CALLBACK_HEADER, readTarget, type TargetLimits } from '../callbacks/target.js';
import type { InferRequest } from '../inference/request.js';

/** Headers of ours, for every door alike. */
const PRIORITY_HEADER = 'Millrace-Priority';
const KEEP_HEADER = 'Millrace-Keep-Ms';
const NOT_BEFORE_HEADER = 'Millrace-Not-Before';

const RESPOND_ASYNC = /(?:^|[,;])\s*respond-async\s*(?=[,;]|$)/i;
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=[,;]|$)/i;
const WHOLE = /^\d{1,15}$/;

/** What a request's headers ask for, whatever its body says. */
export interface Preferences {
  /** `Prefer: wait=SECONDS` (RFC 7240), in ms. */
  waitMs?: number;
  /** `Prefer: respond-async`: to be kept, and answered later. */
  durable?: NonNullable<InferRequest['durable']>;
  priority?: PriorityClass;
}

export type KeepLimits = Pick<Settings, 'jobKeepMs' | 'maxJobKeepMs'> & TargetLimits;

/**
 * Reads the headers. A preference that can't be read is ignored, as RFC 7240 says; what our own headers say is not.
 * @param received epoch ms of Redis's clock.
 * @throws MillraceError `invalid_input` naming the header.
 */
export function readPreferences(
  headers: IncomingHttpHeaders,
  received: number,
  limits: KeepLimits,
): Preferences {
  const prefer = joined(headers.prefer);
  const seconds = prefer === undefined ? undefined : PREFER_WAIT.exec(prefer)?.[1];
  const priority = readPriority(joined(headers['millrace-priority']));
  const durable = asksToBeKept(headers) ? readDurable(headers, received, limits) : undefined;
  if (!durable) refuseAlone(headers);
  return {
    ...(seconds === undefined ? {} : { waitMs: Number(seconds) * 1000 }),
    ...(durable ? { durable } : {}),
    ...(priority === undefined ? {} : { priority }),
  };
}

/** `Prefer: respond-async`. */
export function asksToBeKept({ prefer }: IncomingHttpHeaders): boolean {
  return prefer !== undefined && RESPOND_ASYNC.test(joined(prefer) ?? '');
}

/** Unheard, they would change what is done, and when. */
function refuseAlone(headers: IncomingHttpHeaders): void {
  for (const header of [KEEP_HEADER, NOT_BEFORE_HEADER, CALLBACK_HEADER]) {
    if (headers[header.toLowerCase()] === undefined) continue;
    throw invalid(header, 'is only for requests with "Prefer: respond-async"');
  }
}

function readDurable(
  headers: IncomingHttpHeaders,
  received: number,
  limits: KeepLimits,
): NonNullable<Preferences['durable']> {
  const { jobKeepMs, maxJobKeepMs } = limits;
  const keep = joined(headers['millrace-keep-ms']);
  if (keep !== undefined && (!WHOLE.test(keep) || Number(keep) === 0)) {
    throw invalid(KEEP_HEADER, 'must be a whole number of ms above 0');
  }
  const notBefore = readTime(joined(headers['millrace-not-before']));
  if (notBefore !== undefined && notBefore > received + maxJobKeepMs) {
    throw invalid(NOT_BEFORE_HEADER, `must be within ${maxJobKeepMs} ms from now`);
  }
  const keepMs = Math.min(keep === undefined ? jobKeepMs : Number(keep), maxJobKeepMs);
  const from = Math.max(received, notBefore ?? received);
  const callback = joined(headers['millrace-callback']);
  return {
    keepUntil: from + keepMs,
    ...(notBefore === undefined || notBefore <= received ? {} : { notBefore }),
    ...(callback === undefined ? {} : { callback: readTarget(callback, limits) }),
  };
}

function readPriority(value: string | undefined): PriorityClass | undefined {
  if (value === undefined) return undefined;
  if (!Object.hasOwn(PRIORITIES, value)) {
    throw invalid(PRIORITY_HEADER, `must be one of ${Object.keys(PRIORITIES).join(', ')}`);
  }
  return value as PriorityClass;
}

/** A date of ISO 8601 or HTTP, in epoch ms. */
function readTime(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const time = Date.parse(value);
  if (Number.isNaN(time)) throw invalid(NOT_BEFORE_HEADER, 'must be a date, as 2031-01-31T12:00:00Z');
  return time;
}

function joined(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

function invalid(header: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `The header ${header} ${fault}.`, { field: header });
}
