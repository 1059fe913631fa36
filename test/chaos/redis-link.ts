import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Changes what passes; returns as many bytes as it was given. */
export type Tamper = (chunk: Buffer) => Buffer;

interface Direction {
  readonly from: Socket;
  readonly to: Socket;
  readonly towardsRedis: boolean;
  /** What is held back, in order: when a delay ends, nothing may overtake what it held. */
  readonly held: { bytes: Buffer; until: number }[];
}

/** One process's way to a Redis behind a unix socket: it can be cut, frozen, slowed and tampered with. */
export class RedisLink {
  /** Each chunk is held this long, in each direction, in ms. */
  delayMs = 0;
  /** Done to what the process sends. */
  tamper: Tamper | undefined;
  readonly #directions = new Set<Direction>();
  readonly #server: Server;
  readonly #socketPath: string;
  #state: 'open' | 'cut' | 'frozen' = 'open';

  private constructor(server: Server, socketPath: string) {
    this.#server = server;
    this.#socketPath = socketPath;
    server.on('connection', (client) => this.#join(client));
  }

  /** `redisUrl`: `unix:///socket?password=...`. */
  static async to(redisUrl: string): Promise<{ link: RedisLink; url: string }> {
    const { pathname, searchParams } = new URL(redisUrl);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const password = encodeURIComponent(searchParams.get('password') ?? '');
    return {
      link: new RedisLink(server, decodeURIComponent(pathname)),
      url: `redis://:${password}@127.0.0.1:${port}`,
    };
  }

  /** Breaks every connection, and each new one, until {@link mend}. */
  cut(): void {
    this.#state = 'cut';
    for (const { from } of [...this.#directions]) from.destroy();
  }

  /** Lets nothing through, with every connection kept open: neither side can tell. */
  freeze(): void {
    this.#state = 'frozen';
    for (const { from } of this.#directions) from.pause();
  }

  mend(): void {
    this.#state = 'open';
    this.delayMs = 0;
    for (const { from } of this.#directions) from.resume();
  }

  get connections(): number {
    return this.#directions.size / 2;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#state === 'cut') {
      client.resetAndDestroy();
      return;
    }
    client.setNoDelay(true);
    const redis = connect({ path: this.#socketPath });
    redis.on('error', () => client.resetAndDestroy());
    this.#forward({ from: client, to: redis, towardsRedis: true, held: [] });
    this.#forward({ from: redis, to: client, towardsRedis: false, held: [] });
  }

  #forward(direction: Direction): void {
    const { from, to } = direction;
    this.#directions.add(direction);
    from.on('data', (chunk: Buffer) => this.#pass(direction, chunk));
    from.on('close', () => {
      this.#directions.delete(direction);
      to.destroy();
    });
    if (this.#state === 'frozen') from.pause();
  }

  #pass(direction: Direction, chunk: Buffer): void {
    const { to, towardsRedis, held } = direction;
    const bytes = towardsRedis && this.tamper ? this.tamper(chunk) : chunk;
    if (held.length === 0 && this.delayMs === 0) {
      to.write(bytes);
      return;
    }
    held.push({ bytes, until: performance.now() + this.delayMs });
    if (held.length === 1) this.#release(direction);
  }

  #release(direction: Direction): void {
    const { to, held } = direction;
    const [next] = held;
    if (!next) return;
    setTimeout(
      () => {
        held.shift();
        if (to.writable) to.write(next.bytes);
        this.#release(direction);
      },
      Math.max(0, next.until - performance.now()),
    );
  }
}
