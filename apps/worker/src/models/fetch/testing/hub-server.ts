import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the store does with one request, in the order they come; after the last one it behaves. */
export interface Mood {
  /** Breaks the connection before the first byte of the body. */
  cut?: boolean;
  /** Sends this many bytes of the body and then nothing more, until `cutHeld` breaks the connection. */
  holdAfter?: number;
  /** Answers with this status and no body. */
  status?: number;
  /** Gives the whole file although a part was asked for. */
  ignoreRange?: boolean;
  /** Takes the request and never answers. */
  silent?: boolean;
  /** Doesn't say how long the body is. */
  chunked?: boolean;
}

export interface Seen {
  at: 'hub' | 'store';
  path: string;
  authorization: string | undefined;
  range: string | undefined;
  ifRange: string | undefined;
}

/**
 * A hub in small: one server speaks its `resolve` paths and redirects to a second one, on another port,
 * that stores the files and serves ranges.
 */
export class HubServer {
  readonly seen: Seen[] = [];
  /** Files by `repo/revision/name`. */
  readonly files = new Map<string, Buffer>();
  /** Repositories that answer with a status instead. */
  readonly refusals = new Map<string, number>();
  /** Repositories that never answer. */
  readonly silent = new Set<string>();
  /** Tokens that are refused with 401 whatever they ask for. */
  readonly expiredTokens = new Set<string>();
  readonly moods: Mood[] = [];
  /** Says size and hash of the file in the redirect, as the hub does for large ones. */
  linked = true;
  #held: ServerResponse[] = [];
  readonly #hub = createServer((request, response) => this.#resolve(request, response));
  readonly #store = createServer((request, response) => this.#serve(request, response));

  async start(): Promise<void> {
    await Promise.all(
      [this.#hub, this.#store].map((server) => once(server.listen(0, '127.0.0.1'), 'listening')),
    );
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#store]) {
      server.closeAllConnections();
      server.close();
    }
  }

  /** Breaks the connections that were held, in the middle of their bodies. */
  cutHeld(): void {
    for (const response of this.#held.splice(0)) response.destroy();
  }

  get endpoint(): string {
    return originOf(this.#hub);
  }

  storeRequests(): Seen[] {
    return this.seen.filter(({ at }) => at === 'store');
  }

  #note(at: Seen['at'], { url, headers }: IncomingMessage): string {
    const path = (url ?? '').slice(1);
    const { authorization, range } = headers;
    this.seen.push({ at, path, authorization, range, ifRange: headers['if-range'] as string | undefined });
    return path;
  }

  #resolve(request: IncomingMessage, response: ServerResponse): void {
    const path = this.#note('hub', request);
    const [, repo = '', rest = ''] = /^([^/]+\/[^/]+)\/resolve\/(.+)$/.exec(path) ?? [];
    if (this.silent.has(repo)) return;
    const token = request.headers.authorization?.replace('Bearer ', '');
    if (token !== undefined && this.expiredTokens.has(token)) {
      end(response, 401);
      return;
    }
    const refusal = this.refusals.get(repo);
    if (refusal !== undefined) {
      end(response, refusal);
      return;
    }
    const file = this.files.get(`${repo}/${rest}`);
    if (file === undefined) {
      end(response, 404);
      return;
    }
    response.setHeader('location', `${originOf(this.#store)}/${repo}/${rest}`);
    if (this.linked) {
      response.setHeader('x-linked-size', file.length);
      response.setHeader('x-linked-etag', etagOf(file));
    }
    end(response, 302);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const file = this.files.get(this.#note('store', request));
    const mood = this.moods.shift() ?? {};
    if (mood.silent) return;
    if (file === undefined || mood.status !== undefined) {
      end(response, mood.status ?? 404);
      return;
    }
    const start = mood.ignoreRange ? 0 : rangeStart(request, file);
    if (start >= file.length) {
      end(response, 416);
      return;
    }
    const body = file.subarray(start);
    response.statusCode = start > 0 ? 206 : 200;
    response.setHeader('etag', etagOf(file));
    if (start > 0) response.setHeader('content-range', `bytes ${start}-${file.length - 1}/${file.length}`);
    if (!mood.chunked) response.setHeader('content-length', body.length);
    if (mood.cut) {
      response.flushHeaders();
      response.destroy();
    } else if (mood.holdAfter !== undefined) {
      response.write(body.subarray(0, mood.holdAfter));
      this.#held.push(response);
    } else {
      response.write(body);
      response.end();
    }
  }
}

/** A port of this machine on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export function etagOf(file: Buffer): string {
  return `"${createHash('sha256').update(file).digest('hex')}"`;
}

function rangeStart({ headers }: IncomingMessage, file: Buffer): number {
  const condition = headers['if-range'];
  if (condition !== undefined && condition !== etagOf(file)) return 0;
  return Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
}

function end(response: ServerResponse, status: number): void {
  response.statusCode = status;
  response.end();
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
