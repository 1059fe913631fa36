import { connect, type Socket } from 'node:net';
import type { Wire } from './wire.js';

/** All sockets read into one buffer: what is read is parsed before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(65_536);
const RECONNECT_MS = 50;

export interface Address {
  host: string;
  port: number;
}

export interface ConnectionEvents {
  /** May send the next request. */
  onReady(connection: Connection): void;
  /** `body` only if it was asked for. */
  onAnswer(connection: Connection, status: number, body: Buffer | undefined): void;
  /** The request in flight is lost; the connection comes back by itself. */
  onLost(connection: Connection, reason: string): void;
}

/**
 * One keep-alive connection with at most one request in flight. Where it is refused, or told that the server
 * closes, it turns to the next address.
 */
export class Connection {
  /** Set by whoever sends: which body, and when its latency counts from. */
  bodyIndex = 0;
  since = 0;
  /** When its request was sent; later than `since` where the generator was late. */
  sentAt = 0;
  #socket: Socket | undefined;
  #wire: Wire;
  #inFlight = false;
  #keep = false;
  #closed = false;
  #at: number;

  constructor(
    private readonly addresses: readonly Address[],
    first: number,
    private readonly events: ConnectionEvents,
    private readonly newWire: () => Wire,
  ) {
    this.#at = first;
    this.#wire = newWire();
    this.#open();
  }

  /** What the server says that its last answer took it, in ms. */
  get serverMs(): number | undefined {
    return this.#wire.serverMs;
  }

  get inFlight(): boolean {
    return this.#inFlight;
  }

  send(request: Buffer, keep: boolean): void {
    this.#inFlight = true;
    this.sentAt = performance.now();
    this.#keep = keep;
    this.#wire.expect(keep);
    this.#socket?.write(this.#wire.framed?.(request) ?? request);
  }

  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  #open(): void {
    const { host, port } = this.addresses[this.#at % this.addresses.length] as Address;
    const socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (length: number) => {
          this.#read(readBuffer.subarray(0, length));
          return true;
        },
      },
    });
    this.#socket = socket;
    let reason = 'connection closed';
    this.#wire = this.newWire();
    socket.on('connect', () => {
      if (this.#wire.greeting) socket.write(this.#wire.greeting);
      this.events.onReady(this);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      reason = error.code ?? error.message;
      if (reason === 'ECONNREFUSED') this.#at++;
    });
    socket.on('close', () => this.#lost(socket, reason));
  }

  #read(bytes: Buffer): void {
    if (!this.#inFlight && !this.#wire.greeting) return;
    try {
      const complete = this.#wire.feed(bytes);
      const reply = this.#wire.takeReply?.();
      if (reply) this.#socket?.write(reply);
      if (!complete) return;
    } catch (error) {
      this.#socket?.destroy(error as Error);
      return;
    }
    this.#inFlight = false;
    const { status, closes } = this.#wire;
    this.events.onAnswer(this, status, this.#keep ? this.#wire.body : undefined);
    if (closes) {
      this.#at++;
      this.#socket?.end();
    } else this.events.onReady(this);
  }

  #lost(socket: Socket, reason: string): void {
    if (this.#closed || socket !== this.#socket) return;
    if (this.#inFlight) {
      this.#inFlight = false;
      this.events.onLost(this, reason);
    }
    setTimeout(() => {
      if (!this.#closed) this.#open();
    }, RECONNECT_MS);
  }
}
