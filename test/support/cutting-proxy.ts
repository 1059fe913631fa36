import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A call that a proxy is to cut, once. */
export interface Cut {
  method: string;
  path: RegExp;
  /** Where: in the body on its way to the server, or in the answer, after so many bytes of it. */
  of: 'request' | 'answer';
  after: number;
}

/** Passes calls on to a server, and cuts the connection of those that it is told to. */
export class CuttingProxy {
  /** Calls that came, as `GET /v1/batches 0`, with where a range begins. */
  readonly calls: string[] = [];
  readonly #server: Server;
  readonly #cuts: Cut[];

  private constructor(target: string, cuts: readonly Cut[]) {
    this.#cuts = [...cuts];
    this.#server = createServer((req, res) => this.#pass(target, req, res));
  }

  static async start(target: string, cuts: readonly Cut[]): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, cuts);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts that were not come to. */
  get left(): readonly Cut[] {
    return this.#cuts;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(target: string, req: IncomingMessage, res: ServerResponse): void {
    const { method = '', url = '', headers } = req;
    const [, from = '0'] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [];
    this.calls.push(`${method} ${url} ${from}`);
    const index = this.#cuts.findIndex((each) => each.method === method && each.path.test(url));
    const [cut] = index < 0 ? [] : this.#cuts.splice(index, 1);
    const onward = request(`${target}${url}`, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      pass(
        answer,
        (chunk) => res.write(chunk),
        cut?.of === 'answer' ? cut.after : undefined,
        () => res.destroy(),
      );
      answer.on('end', () => res.end());
    });
    onward.on('error', () => res.destroy());
    pass(
      req,
      (chunk) => onward.write(chunk),
      cut?.of === 'request' ? cut.after : undefined,
      () => {
        onward.destroy();
        req.socket.destroy();
      },
    );
    req.on('end', () => onward.end());
  }
}

/** Passes bytes on, and ends it all after so many of them. */
function pass(
  from: IncomingMessage,
  write: (chunk: Buffer) => void,
  after: number | undefined,
  cut: () => void,
): void {
  let left = after ?? Number.POSITIVE_INFINITY;
  const cutSoon = (): void => {
    from.removeAllListeners('data').pause();
    // What was written is on its way first.
    setImmediate(cut);
  };
  from.on('data', (chunk: Buffer) => {
    write(chunk.subarray(0, Math.min(left, chunk.byteLength)));
    left -= chunk.byteLength;
    if (left <= 0) cutSoon();
  });
  if (after === 0) cutSoon();
}
