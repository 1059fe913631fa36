import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { testRedisUrl } from './redis.js';

/** A way to the test Redis that can be cut and mended, so that one gateway sees Redis go away. */
export class RedisProxy {
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  /** Address of the proxy, with the credentials of the real one. */
  get url(): string {
    const { searchParams, username, password } = new URL(testRedisUrl());
    const secret = searchParams.get('password') ?? password;
    return `redis://${secret ? `${username}:${secret}@` : ''}127.0.0.1:${this.#port}`;
  }

  async open(): Promise<this> {
    const server = createServer((client) => this.#join(client));
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  /** Breaks every connection and refuses new ones until {@link open}. */
  async cut(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Lets nothing through, with every connection kept open: a Redis that hangs. */
  freeze(): void {
    for (const socket of this.#sockets) socket.unpipe();
  }

  #join(client: Socket): void {
    const { protocol, hostname, port, pathname } = new URL(testRedisUrl());
    const redis =
      protocol === 'unix:'
        ? connect({ path: decodeURIComponent(pathname) })
        : connect({ host: hostname, port: Number(port || 6379) });
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
