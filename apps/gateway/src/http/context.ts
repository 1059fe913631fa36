import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type GatewayMetrics, type Logger, MillraceError, type RedisClock } from '@millrace/shared';
import type { RequestHandler, Response } from 'express';
import { ANONYMOUS } from '../admission/api-keys.js';
import { ClientGone } from '../inference/client-gone.js';
import type { Compression } from './compression.js';
import type { GatewayState } from './health.js';
import { closeWithSocket } from './queued-answers.js';
import { API_HEADERS } from './security-headers.js';
import type { UnreadAnswers } from './unread-answers.js';

/** Most header lines of a request. Their bytes, 16 KiB at most, Node.js counts. */
const MAX_HEADERS = 100;
/** Names of requests that clients give: what fits a header and a line of a log. */
const CLIENT_ID = /^[!-~](?:[ -~]{0,126}[!-~])?$/;

/** How one door writes an error; the codes and statuses are the same at all of them. */
export interface DoorErrors {
  /** The door's name in metrics. */
  name: string;
  contentType: string;
  /** The status of an error where the door's protocol has another than the table says. */
  statusOf?(error: MillraceError): number | undefined;
  render(error: MillraceError, requestId: string): object;
}

/** How a gateway's answers go out. */
export interface Sending {
  compression: Compression;
  unread: UnreadAnswers;
}

/** What is known of a request from its first byte to its last, whichever door it takes. */
export class RequestContext {
  readonly requestId = randomUUID();
  /** Epoch ms of Redis's clock. */
  readonly received: number;
  readonly door: DoorErrors;
  /** The client's own id, its `X-Request-Id`, where it can be said again; it names nothing inside. */
  readonly clientId: string | undefined;
  tenant = ANONYMOUS;
  /** A known model's name, or empty: names that clients invent never become metric labels. */
  model = '';
  /** The error that was answered, if one was. */
  error: MillraceError | undefined;
  readonly gone = new ClientGone();

  constructor(received: number, door: DoorErrors, clientId: string | string[] | undefined) {
    this.received = received;
    this.door = door;
    this.clientId = typeof clientId === 'string' && CLIENT_ID.test(clientId) ? clientId : undefined;
  }

  /** The client's id if it has one, and ours, name and value in turn. */
  get idHeaders(): string[] {
    const { clientId, requestId } = this;
    if (clientId === undefined) return ['X-Request-Id', requestId];
    return ['X-Request-Id', clientId, 'X-Millrace-Request-Id', requestId];
  }
}

/** The same of a request of HTTP. */
export class HttpContext extends RequestContext {
  readonly sending: Sending;
  /** Headers of every answer, name and value in turn; a page sets its own. */
  securityHeaders: readonly string[] = API_HEADERS;
  readonly #state: GatewayState;

  constructor(
    received: number,
    door: DoorErrors,
    clientId: string | string[] | undefined,
    { state, sending }: Pick<ContextOptions, 'state' | 'sending'>,
  ) {
    super(received, door, clientId);
    this.sending = sending;
    this.#state = state;
  }

  /** A connection that is kept open would bring its next request to a gateway that is going away. */
  get closesConnection(): boolean {
    return this.#state.draining;
  }
}

export function contextOf(res: Response): HttpContext {
  return res.locals.context as HttpContext;
}

/** The door that a request has taken; undefined before it was looked at. */
export function doorTaken(res: ServerResponse): DoorErrors | undefined {
  return (res as Partial<Response>).locals?.context?.door;
}

/** What is written down of every request. */
export interface RecordParts {
  clock: RedisClock;
  metrics: GatewayMetrics;
  logger: Logger;
}

/**
 * Counts and logs how a request ended.
 * @param method as its protocol names it.
 * @param status of HTTP, at every door; 499 for a client that went away.
 */
export function recordEnd(
  { clock, metrics, logger }: RecordParts,
  context: RequestContext,
  method: string,
  status: number,
): void {
  const { model, door, error, requestId, clientId, tenant } = context;
  const ms = Math.round((clock.now() - context.received) * 1000) / 1000;
  metrics.requests.inc({ model, door: door.name, status: String(status) });
  metrics.requestSeconds.observe({ model, door: door.name }, ms / 1000);
  if (error) metrics.errors.inc({ model, code: error.code });
  logger.info({ requestId, clientId, method, model, status, ms, tenant, code: error?.code }, 'request');
}

export interface ContextOptions extends RecordParts {
  state: GatewayState;
  sending: Sending;
  /** The door that answers for a path, errors included. */
  doorOf(path: string): DoorErrors;
}

/** The first handler of all: gives each request its id and context, and counts and logs how it ended. */
export function requestContext(options: ContextOptions): RequestHandler {
  const { clock, state, doorOf } = options;
  return (req, res, next) => {
    const context = new HttpContext(clock.now(), doorOf(req.path), req.headers['x-request-id'], options);
    res.locals.context = context;
    state.enter();
    // Express closes `req` right after its body was read: only `res` tells of a client that went away.
    res.on('close', () => {
      state.leave();
      if (!res.writableEnded) context.gone.tell();
      recordEnd(options, context, req.method, res.writableEnded ? res.statusCode : 499);
    });
    // It waits behind another answer of its connection, and would not hear of its end.
    if (!res.socket) closeWithSocket(res);
    if (req.rawHeaders.length > 2 * MAX_HEADERS) {
      res.setHeader('Connection', 'close');
      throw new MillraceError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
    }
    // HTTP/1.1 asks for it; an answer of our shape is ours to give.
    if (req.headers.host === undefined && req.httpVersionMinor === 1) {
      res.setHeader('Connection', 'close');
      throw new MillraceError('invalid_http', 'The header Host is missing.', { field: 'Host' });
    }
    if (repeatsHost(req.rawHeaders)) {
      res.setHeader('Connection', 'close');
      throw new MillraceError('invalid_http', 'The header Host is repeated.', { field: 'Host' });
    }
    next();
  };
}

/** Node.js keeps the first; a proxy in front may have gone by the last (RFC 9112, section 3.2). */
function repeatsHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}
