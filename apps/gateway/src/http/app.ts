import type { IncomingHttpHeaders } from 'node:http';
import type { GatewayMetrics, KeyScope, Logger, RedisClock } from '@millrace/shared';
import express, { type Express, type RequestHandler, type Router } from 'express';
import type { ApiKeys } from '../admission/api-keys.js';
import { contextOf, type DoorErrors, requestContext, type Sending } from './context.js';
import { cors } from './cors.js';
import { errorHandler, methodNotAllowed, notFound } from './errors.js';
import type { GatewayState } from './health.js';

export interface AppOptions {
  clock: RedisClock;
  logger: Logger;
  metrics: GatewayMetrics;
  state: GatewayState;
  sending: Sending;
  /** Whose scripts may ask; none when empty. */
  corsOrigins: readonly string[];
  keys: ApiKeys;
  /** Which door's shape an error at a path takes. */
  doorOf(path: string): DoorErrors;
  /** Answers that need no key: liveness and readiness. */
  health: Router;
  /** The OpenAPI document and its page, which need no key. */
  documentation: Router;
  /** Has a login of its own. */
  dashboard: { path: string; router: Router };
  metricsRoute: RequestHandler;
  /** Whether metrics can be read without a key. */
  metricsOpen: boolean;
  doors: Router[];
}

/** The order in which a request meets everything. */
export function createApp(options: AppOptions): Express {
  const { clock, logger, metrics, state, sending, keys, doorOf, corsOrigins, dashboard } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // What even our error handler fails on must not show its stack.
  app.set('env', 'production');
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  app.use(requestContext({ clock, logger, metrics, state, sending, doorOf }));
  if (corsOrigins.length > 0) app.use(cors(corsOrigins, dashboard.path));
  // Doors first: theirs are the paths that are asked thousands of times a second.
  const onError = errorHandler(clock, logger);
  for (const door of options.doors) {
    // At the door itself: an error that leaves a router waits (setImmediate) until all sockets that have something
    // to read were read, and under overload those are hundreds.
    door.use(onError);
    app.use(door);
  }
  app.use(options.health);
  app.use(options.documentation);
  app.use(dashboard.path, dashboard.router);
  const metricsHandlers = [options.metricsRoute];
  if (!options.metricsOpen) metricsHandlers.unshift(authenticate(keys));
  app.route('/metrics').get(metricsHandlers).all(methodNotAllowed('GET'));
  app.use(authenticate(keys));
  app.use(notFound);
  app.use(onError);
  return app;
}

const ANY_SCOPE = (): readonly KeyScope[] => [];

/**
 * Asks for an API key where there are any, for the scopes that the headers need, and notes whose it is. OPTIONS, which tells
 * no more than the documents do, needs none: browsers ask it without.
 */
export function authenticate(
  keys: ApiKeys,
  scopes: (headers: IncomingHttpHeaders) => readonly KeyScope[] = ANY_SCOPE,
): RequestHandler {
  return (req, res, next) => {
    if (req.method !== 'OPTIONS')
      contextOf(res).tenant = keys.authenticate(req.headers, ...scopes(req.headers));
    next();
  };
}
