import { MillraceError } from '@millrace/shared';
import type { ErrorRequestHandler, RequestHandler, Response } from 'express';

/** Names of the errors with which ioredis tells that Redis can't be asked. */
const REDIS_ERRORS = new Set(['Error', 'AbortError', 'InterruptError', 'MaxRetriesPerRequestError']);

/** What only asks, and may be given up in the middle; anything else may have been done. */
const READS = new Set(['GET', 'HEAD']);
/** How often a question that waits looks whether Redis still answers, in ms. */
const LOOK_MS = 250;

/** First handler: a Redis that is away, or hangs, holds up nobody who asks. */
export function requireRedis(isReady: () => boolean): RequestHandler {
  return (req, res, next) => {
    if (!isReady()) {
      next(unavailable());
      return;
    }
    // Who asks to wait for a change waits through it, as long as he said.
    const waits = req.query.wait !== undefined;
    if (READS.has(req.method) && !waits) giveUpWith(res, isReady, () => next(unavailable()));
    next();
  };
}

/** Gives up on an answer that has not begun, if Redis falls silent. What its handler comes to later is dropped. */
function giveUpWith(res: Response, isReady: () => boolean, giveUp: () => void): void {
  const timer = setInterval(() => {
    if (!res.headersSent && isReady()) return;
    clearInterval(timer);
    if (!res.headersSent) giveUp();
  }, LOOK_MS);
  res.once('close', () => clearInterval(timer));
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
