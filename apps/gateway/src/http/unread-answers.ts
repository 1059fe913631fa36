import type { ServerResponse } from 'node:http';
import type { GatewayMetrics } from '@millrace/shared';
import { closeWithSocket } from './queued-answers.js';

/** A client that reads nothing of a waiting answer for this long, in ms, is cut off. */
const UNREAD_MS = 10_000;

interface Waiting {
  bytes: number;
  /** Gives it up, and its client. */
  cut(): void;
}

/**
 * Answers that the kernel did not take whole, because their clients don't read as fast as they ask. Each may wait for
 * as long as it gets on; all together they may take so many bytes, and the oldest goes first.
 */
export class UnreadAnswers {
  readonly #most: number;
  readonly #metrics: Pick<GatewayMetrics, 'unreadBytes' | 'answersCut'>;
  /** The oldest first. */
  readonly #waiting = new Map<object, Waiting>();
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
    this.hold(res, bytes, () => res.req.socket.destroy());
    res.once('close', () => this.forget(res));
  }

  /**
   * Counts an answer that waits, until {@link forget}; for what `watch` does not know.
   * @param answer stands for it; another number of bytes replaces the first.
   */
  hold(answer: object, bytes: number, cut: () => void): void {
    const before = this.#waiting.get(answer)?.bytes ?? 0;
    this.#waiting.set(answer, { bytes, cut });
    this.#count(bytes - before);
    while (this.#held > this.#most && this.#waiting.size > 1) this.#cutOldest();
  }

  forget(answer: object): void {
    const waiting = this.#waiting.get(answer);
    if (!waiting) return;
    this.#waiting.delete(answer);
    this.#count(-waiting.bytes);
  }

  #cutOldest(): void {
    for (const [oldest, { cut }] of this.#waiting) {
      this.forget(oldest);
      this.#metrics.answersCut.inc();
      cut();
      return;
    }
  }

  #count(bytes: number): void {
    this.#held += bytes;
    this.#metrics.unreadBytes.set(this.#held);
  }
}
