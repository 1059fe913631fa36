import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, isIP, Server as NetServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { MillraceError, type Settings, StartupError } from '@millrace/shared';
import type { Express, Request, Response } from 'express';
import type { ArrivingBodies } from './arriving-bodies.js';
import type { DoorErrors } from './context.js';
import type { GatewayState } from './health.js';
import { bareAnswer } from './unreadable.js';

/** Longest time between two looks for clients that are too slow, in ms. */
const CHECK_MS = 5_000;
const SLASH = 0x2f;
/** How long the listener stays open after readiness failed, in ms. */
export const TURN_AWAY_MS = 200;
/** How long idle connections stay open after the listener closed, in ms, and no longer than an eighth of the grace. */
const IDLE_MS = 2000;

export type BindSettings = Pick<Settings, 'host' | 'apiKeys' | 'allowPublic'>;

export type ListenSettings = Pick<
  Settings,
  'host' | 'port' | 'headersTimeoutMs' | 'requestTimeoutMs' | 'keepAliveMs'
>;

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** @throws StartupError when the address is open to others and no key is asked for. */
export function requireSafeBind({ host, apiKeys, allowPublic }: BindSettings): void {
  if (isLoopback(host) || apiKeys.length > 0 || allowPublic) return;
  throw new StartupError(
    `Listening on ${host} without API keys would open this server to everyone who can reach it.`,
    'Make a key with `millrace keys NAME` and set MILLRACE_API_KEYS, listen on 127.0.0.1, or pass --allow-public.',
  );
}

/**
 * Listens.
 * @param arriving is told of every request.
 * @throws StartupError when the port is taken or the address can't be listened on.
 */
export async function listen(
  app: Express,
  door: DoorErrors,
  settings: ListenSettings,
  arriving: ArrivingBodies,
): Promise<Server> {
  const { host, port, headersTimeoutMs, requestTimeoutMs, keepAliveMs } = settings;
  const serve = (req: IncomingMessage, res: ServerResponse): void => {
    arriving.begin(res);
    if (req.url?.charCodeAt(0) === SLASH) app(req, res);
    // A proxy's absolute form is the app's as well. What it can't read at all, it passes by.
    else app(req as Request, res as Response, () => refuseTarget(res, door));
  };
  const server = createServer(
    {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      // It knows no exception: see arriving-bodies.ts.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeoutMs / 4, requestTimeoutMs / 4),
      noDelay: true,
      // The app says so itself, in our shape.
      requireHostHeader: false,
      ...messagesOf(app),
    },
    serve,
  );
  // An expectation that nobody knows is ignored, as an unknown header is.
  server.on('checkExpectation', serve);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusal(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  return server;
}

/**
 * Classes of requests and responses that are born with the app's prototypes. Express would give them to each
 * object as it comes, and every later access to one whose prototype was changed misses the engine's caches: an
 * eighth of this process's time under load.
 */
function messagesOf(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse<AppRequest> {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request);
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}

function refuseTarget(res: ServerResponse, door: DoorErrors): void {
  const error = new MillraceError('invalid_http', 'The request target is not valid.', { field: 'path' });
  const { status, headers, body } = bareAnswer(error, door);
  res.writeHead(status, headers).end(body);
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

export interface DrainOptions {
  state: GatewayState;
  /** A further listener whose connections the server serves. */
  beside: NetServer | undefined;
  /** How long the requests that came may take to be answered, in ms. */
  graceMs: number;
  /** Answers those who can't be waited for any longer. */
  giveUp(): void;
}

/** Lets readiness fail, stops listening, and waits until the requests that came are answered. */
export async function drainServer(
  server: Server,
  { state, beside, graceMs, giveUp }: DrainOptions,
): Promise<void> {
  const deadline = performance.now() + graceMs;
  state.drain();
  // Those who ask for readiness, and those whose answer says "Connection: close", get to turn away first:
  // a request sent into a closing connection is lost.
  await setTimeout(Math.min(TURN_AWAY_MS, graceMs));
  // Not the HTTP server's own close(): that cuts idle connections at once, under a request that is just being sent
  // on one. Left open for a while, each brings at most one more, whose answer tells its client to leave.
  const listeners = beside ? [server, beside] : [server];
  const closed = Promise.all(listeners.map((listener) => once(listener, 'close')));
  for (const listener of listeners) NetServer.prototype.close.call(listener);
  await Promise.race([closed, setTimeout(Math.min(IDLE_MS, graceMs / 8), undefined, { ref: false })]);
  server.closeIdleConnections();
  if (await state.untilIdle(deadline - performance.now())) return;
  giveUp();
  await state.untilIdle(TURN_AWAY_MS);
}

/** Why an address can't be listened on, and what to do; `flag` sets its port. */
export function refusal(
  error: NodeJS.ErrnoException,
  host: string,
  port: number,
  flag: 'port' | 'grpc-port' = 'port',
): StartupError {
  const at = `${host}:${port}`;
  if (error.code === 'EADDRINUSE') {
    return new StartupError(
      `Port ${port} on ${host} is already in use.`,
      `Choose another with --${flag}, or stop what listens there.`,
      { cause: error },
    );
  }
  if (error.code === 'EACCES') {
    return new StartupError(
      `Listening on ${at} is not permitted.`,
      `Choose a port from 1024 up with --${flag}.`,
      {
        cause: error,
      },
    );
  }
  return new StartupError(`Can't listen on ${at}: ${error.message}.`, `Check --host and --${flag}.`, {
    cause: error,
  });
}
