import { type LinkWatch, type Logger, readReplies, replyChannel } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { ReplyWaiter } from './reply-waiter.js';

/**
 * The one subscription on which this gateway hears its replies. A message is only a hint that a reply is
 * stored: what was published while the connection was down is read from the store once it is back.
 */
export class ReplyChannel {
  readonly #subscriber: Redis;
  readonly #link: LinkWatch;
  readonly #channel: string;
  readonly #waiter: ReplyWaiter;
  readonly #logger: Logger;

  constructor(subscriber: Redis, link: LinkWatch, gatewayId: string, waiter: ReplyWaiter, logger: Logger) {
    this.#subscriber = subscriber;
    this.#link = link;
    this.#channel = replyChannel(gatewayId);
    this.#waiter = waiter;
    this.#logger = logger;
  }

  /** Whether replies can be heard now. */
  get ready(): boolean {
    return this.#link.answering;
  }

  async start(): Promise<void> {
    this.#subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
      if (channel.toString() === this.#channel) this.#receive(message);
    });
    await this.#subscriber.subscribe(this.#channel);
    this.#subscriber.on('ready', () => this.#resume());
  }

  #receive(message: Buffer): void {
    for (const reply of readReplies(message)) {
      if ('stored' in reply) this.#waiter.accept(reply.stored);
      else this.#waiter.acceptReference(reply);
    }
  }

  /**
   * Reads the store only once Redis has acknowledged the subscription: a reply published between an earlier
   * read and the acknowledgement would be missed by both.
   */
  #resume(): void {
    this.#subscriber
      .subscribe(this.#channel)
      .then(() => this.#waiter.collect(this.#waiter.waiting()))
      .catch((err: unknown) => {
        // The command connection is away: its own return reads the store again.
        this.#logger.warn({ err }, 'replies missed while disconnected could not be read yet');
      });
  }
}
