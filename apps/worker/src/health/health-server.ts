import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartupError, type WorkerMetrics, type WorkerState } from '@millrace/shared';

/** Who asks is a probe or a scraper: it says so at once and in few words. */
const LIMITS = {
  headersTimeout: 2000,
  requestTimeout: 4000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8192,
};
/** The system closes those beyond. */
const MOST_CONNECTIONS = 256;

export interface HealthServer {
  url: string;
  close(): Promise<void>;
}

/** A worker's own port: `/health/live`, `/health/ready` (200 only while serving) and `/metrics`. */
export async function startHealthServer(
  at: { host: string; port: number },
  state: () => WorkerState,
  /** Whether it serves and can fetch jobs. */
  ready: () => boolean,
  metrics: WorkerMetrics,
): Promise<HealthServer> {
  const server = createServer(LIMITS, (request, response) => {
    const path = request.url?.split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end();
    } else if (path === '/metrics') {
      metrics.registry.metrics().then(
        (text) => response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    } else if (path === '/health/live' || path === '/health/ready') {
      const well = path === '/health/live' ? state() !== 'stopped' : ready();
      response.writeHead(well ? 200 : 503, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ state: state(), ready: ready() }));
    } else {
      response.writeHead(404).end();
    }
  });
  server.maxConnections = MOST_CONNECTIONS;
  await listen(server, at);
  const { address, port, family } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]` : address;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new StartupError(
          `The worker's health port ${host}:${port} cannot be opened (${error.code ?? error.message}).`,
          'Set MILLRACE_WORKER_PORT to another one, or to 0 for any free one.',
        ),
      );
    });
    server.listen(port, host, resolve);
  });
}
