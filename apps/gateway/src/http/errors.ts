import { type Logger, MillraceError, type RedisClock } from '@millrace/shared';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { contextOf, type RequestContext } from './context.js';
import { ACCEPTED_CODINGS } from './inflate.js';
import { type Answer, respond, respondNothing, timingsOf } from './respond.js';

/** Anything thrown as an error with a code. What is not ours says nothing to the client. */
export function toMillraceError(thrown: unknown): MillraceError {
  if (thrown instanceof MillraceError) return thrown;
  // Express throws these for a path that is not valid percent-encoding.
  if (thrown instanceof URIError) {
    return new MillraceError('invalid_input', 'The path is not valid percent-encoding.', { field: 'path' });
  }
  return new MillraceError('internal', undefined, {}, { cause: thrown });
}

/** Notes an error that is about to be answered; what is the server's fault goes into the log. */
export function noteError(error: MillraceError, context: RequestContext, logger: Logger): void {
  context.error = error;
  const { spec, code } = error;
  const { status, fault } = spec;
  if (fault !== 'server') return;
  const log = { err: error, requestId: context.requestId, model: context.model };
  // Redis away is told once, when it goes: a line for every request it costs would flood the log.
  if (status === 503 && code !== 'storage_unavailable') logger.debug(log, 'request refused');
  else logger.error(log, 'request failed');
}

/** An error as the door that its request took writes it. */
export function renderError(error: MillraceError, { door, requestId }: RequestContext): Answer {
  return {
    status: door.statusOf?.(error) ?? error.spec.status,
    contentType: door.contentType,
    body: JSON.stringify(door.render(error, requestId)),
  };
}

/** The last handler: writes an error in the shape of the door that the request took. */
export function errorHandler(clock: RedisClock, logger: Logger): ErrorRequestHandler {
  return (thrown: unknown, _req, res, _next) => {
    // It was given up, and told so, before its handler came to this.
    if (res.writableEnded) return;
    const context = contextOf(res);
    const error = toMillraceError(thrown);
    noteError(error, context, logger);
    if (res.headersSent) {
      res.destroy();
      return;
    }
    const answer = renderError(error, context);
    const { retryAfterSeconds } = error.details;
    if (retryAfterSeconds !== undefined && (answer.status === 429 || answer.status === 503)) {
      res.setHeader('Retry-After', retryAfterSeconds);
    }
    if (answer.status === 401) res.setHeader('WWW-Authenticate', 'Bearer');
    if (answer.status === 415 && error.details.field === 'Content-Encoding')
      res.setHeader('Accept-Encoding', ACCEPTED_CODINGS);
    respond(res, answer, timingsOf({}, context.received, clock.now()));
  };
}

export const notFound: RequestHandler = () => {
  throw new MillraceError('not_found');
};

/** For the end of a route: OPTIONS is 204 with what is allowed, any other method 405 with the same. */
export function methodNotAllowed(...allowed: string[]): RequestHandler {
  const taken = allowed.includes('GET') ? ['HEAD', ...allowed] : allowed;
  const header = [...taken, 'OPTIONS'].join(', ');
  return (req, res) => {
    if (req.method === 'OPTIONS') {
      respondNothing(res, ['Allow', header]);
      return;
    }
    res.setHeader('Allow', header);
    throw new MillraceError(
      'method_not_allowed',
      `This address does not take ${req.method}, only ${taken.join(', ')}.`,
      { field: 'method' },
    );
  };
}
