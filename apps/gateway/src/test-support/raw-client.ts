import { connect, type Socket } from 'node:net';
import type { Gateway } from '../gateway.js';

/** A connection that says what it likes, and keeps what it hears. */
export class RawClient {
  readonly socket: Socket;
  /** All that was answered so far. */
  heard = '';
  /** Resolves when the connection is closed, however. */
  readonly closed: Promise<void>;

  constructor({ host, port }: Pick<Gateway, 'host' | 'port'>) {
    this.socket = connect(port, host);
    this.socket.setEncoding('latin1').on('data', (text) => {
      this.heard += text;
    });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
  }

  say(bytes: string): this {
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
    return this;
  }

  /** Says something again and again, slowly, for as long as somebody listens. */
  drip(bytes: string, everyMs: number): this {
    const timer = setInterval(() => this.say(bytes), everyMs);
    void this.closed.then(() => clearInterval(timer));
    return this;
  }

  /** Status of each answer so far. */
  get statuses(): number[] {
    return [...this.heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }
}
