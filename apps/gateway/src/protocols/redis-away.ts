import { MillraceError } from '@millrace/shared';
import type { ErrorRequestHandler, RequestHandler } from 'express';

/** Names of the errors with which ioredis tells that Redis can't be asked. */
const REDIS_ERRORS = new Set(['Error', 'AbortError', 'InterruptError', 'MaxRetriesPerRequestError']);

/** First handler: a Redis that hangs would hold up whoever asks until its connection is given up. */
export function requireRedis(isReady: () => boolean): RequestHandler {
  return (_req, _res, next) => next(isReady() ? undefined : unavailable());
}

/** Last handler of a router: what Redis throws that is away, as who asks is told of it. */
export const redisErrors: ErrorRequestHandler = (thrown: unknown, _req, _res, next) =>
  next(redisAway(thrown) ?? thrown);

/** What Redis throws that is away, silent, full or still loading. */
function redisAway(thrown: unknown): MillraceError | undefined {
  if (!(thrown instanceof Error) || thrown instanceof MillraceError) return undefined;
  const { name, message } = thrown;
  // Replies begin with their kind; ERR and WRONGTYPE are faults of ours. Of a lost connection ioredis tells plainly.
  const isAway = name === 'ReplyError' ? !/^(?:ERR|WRONGTYPE) /.test(message) : REDIS_ERRORS.has(name);
  return isAway ? unavailable(thrown) : undefined;
}

function unavailable(cause?: Error): MillraceError {
  return new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
}
