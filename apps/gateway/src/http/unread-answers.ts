import type { ServerResponse } from 'node:http';
import type { GatewayMetrics } from '@millrace/shared';
import { closeWithSocket } from './queued-answers.js';

/** A client that reads nothing of a waiting answer for this long, in ms, is cut off. */
const UNREAD_MS = 10_000;

/**
 * Answers that the kernel did not take whole, because their clients don't read as fast as they ask. Each may wait for
 * as long as it gets on; all together they may take so many bytes, and the oldest goes first.
 */
export class UnreadAnswers {
  readonly #most: number;
  readonly #metrics: Pick<GatewayMetrics, 'unreadBytes' | 'answersCut'>;
  /** Bytes by answer, the oldest first. */
  readonly #waiting = new Map<ServerResponse, number>();
  #held = 0;

  constructor(most: number, metrics: Pick<GatewayMetrics, 'unreadBytes' | 'answersCut'>) {
    this.#most = most;
    this.#metrics = metrics;
  }

  /** To be asked for every answer after its last byte was written; does nothing for one that is out. */
  watch(res: ServerResponse, bytes: number): void {
    const { socket } = res;
    if (socket) {
      if (socket.writableLength === 0) return;
      // Node tells progress from none, and sets the connection's usual idle time once the answer is out.
      socket.setTimeout(UNREAD_MS);
    } else {
      if (res.destroyed || res.writableFinished) return;
      // It waits behind another answer of its connection.
      closeWithSocket(res);
      if (res.destroyed) return;
    }
    this.#waiting.set(res, bytes);
    this.#count(bytes);
    res.once('close', () => this.#forget(res));
    while (this.#held > this.#most && this.#waiting.size > 1) this.#cutOldest();
  }

  #cutOldest(): void {
    const [oldest] = this.#waiting.keys();
    if (!oldest) return;
    this.#forget(oldest);
    this.#metrics.answersCut.inc();
    oldest.req.socket.destroy();
  }

  #forget(res: ServerResponse): void {
    const bytes = this.#waiting.get(res);
    if (bytes === undefined) return;
    this.#waiting.delete(res);
    this.#count(-bytes);
  }

  #count(bytes: number): void {
    this.#held += bytes;
    this.#metrics.unreadBytes.set(this.#held);
  }
}
