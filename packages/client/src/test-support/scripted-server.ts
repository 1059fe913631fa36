import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** How one request is answered, once its body is there. */
export type Step = (res: ServerResponse, req: IncomingMessage) => void;

export interface Received {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** A real HTTP server that answers one request after the other as a test says; the last step repeats. */
export class ScriptedServer {
  url = '';
  readonly received: Received[] = [];
  /** Requests whose client went away before the answer. */
  abandoned = 0;
  #steps: Step[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (req, res) => {
      res.once('close', () => {
        if (!res.writableEnded) this.abandoned += 1;
      });
      const { method = '', url: path = '', headers } = req;
      this.received.push({ method, path, headers, body: await buffer(req) });
      const step = this.#steps.length > 1 ? this.#steps.shift() : this.#steps[0];
      step?.(res, req);
    });
  }

  static async start(): Promise<ScriptedServer> {
    const server = new ScriptedServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    server.url = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}`;
    return server;
  }

  /** Forgets what was received. */
  answer(...steps: Step[]): void {
    this.#steps = steps;
    this.received.length = 0;
    this.abandoned = 0;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Answers JSON. */
export function json(status: number, body: object, headers: Record<string, string> = {}): Step {
  return (res) =>
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Never answers. */
export const hang: Step = () => undefined;

/** Breaks the connection. */
export const hangUp: Step = (_res, req) => void req.socket.destroy();

/** Breaks the connection in the middle of a good answer. */
export const breakOff: Step = (res, req) => {
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  res.write('{"data":', () => req.socket.destroy());
};
