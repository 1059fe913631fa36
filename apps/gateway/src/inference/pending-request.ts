import { MillraceError, type Reply } from '@millrace/shared';
import type { PlannedPart } from './parts.js';

/** A request that waits: its parts, the replies so far, and the promise of all of them. */
export class PendingRequest {
  readonly requestId: string;
  readonly queue: string;
  readonly parts: readonly PlannedPart[];
  /** Deadline in ms of the process's monotonic clock. */
  readonly expiresAt: number;
  readonly bytes: number;
  readonly itemCount: number;
  /** Resolves with one reply per part, in order; rejects with the reason why there will be none. */
  readonly answer: Promise<Reply[]>;
  /** Whether the queue has acknowledged all parts: from then on the request must not be lost. */
  accepted = false;
  readonly #replies: (Reply | undefined)[];
  #missing: number;
  #settled = false;
  #resolve: (replies: Reply[]) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(requestId: string, queue: string, parts: readonly PlannedPart[], expiresAt: number) {
    this.requestId = requestId;
    this.queue = queue;
    this.parts = parts;
    this.expiresAt = expiresAt;
    this.#replies = new Array(parts.length).fill(undefined);
    this.#missing = parts.length;
    let bytes = 0;
    let items = 0;
    for (const part of parts) {
      bytes += part.bytes;
      items += part.count;
    }
    this.bytes = bytes;
    this.itemCount = items;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** The parts that have no reply yet. */
  unanswered(): PlannedPart[] {
    return this.parts.filter((_, index) => this.#replies[index] === undefined);
  }

  /**
   * Takes a part's reply; a second one for the same part changes nothing. While somebody waits, a part is cancelled
   * only if its job was removed from the queue: then nobody need wait for the others.
   */
  deliver(reply: Reply): void {
    const { firstItem, items } = reply.header;
    const index = this.parts.findIndex((part) => part.firstItem === firstItem);
    if (this.#settled || index < 0 || this.#replies[index] !== undefined) return;
    if (items.length > 0 && items.every(({ status }) => status === 'cancelled')) {
      this.fail(new MillraceError('cancelled'));
      return;
    }
    this.#replies[index] = reply;
    this.#missing -= 1;
    if (this.#missing > 0) return;
    this.#settled = true;
    this.#resolve(this.#replies.filter((r) => r !== undefined));
  }

  fail(error: Error): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#reject(error);
  }
}
