import { ANY_GATEWAY, packReplies, publishedReply, readReplies, replyChannel } from '@millrace/shared';
import type { Redis } from 'ioredis';

type Listener = () => void;
const NOTHING = Buffer.alloc(0);

/**
 * Tells when parts of durable requests are answered: every gateway hears of all of them. A message can be missed,
 * so who listens looks again by itself now and then, and when the connection is back.
 */
export class ReplyNotices {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #channel = Buffer.from(replyChannel(ANY_GATEWAY));
  readonly #onReady = (): void => this.#tellOfAll();
  readonly #onMessage = (channel: Buffer, message: Buffer): void => {
    if (channel.equals(this.#channel)) this.#receive(message);
  };

  constructor(redis: Redis, subscriber: Redis) {
    this.#redis = redis;
    this.#subscriber = subscriber;
  }

  async start(): Promise<void> {
    this.#subscriber.on('messageBuffer', this.#onMessage);
    this.#subscriber.on('ready', this.#onReady);
    await this.#subscriber.subscribe(replyChannel(ANY_GATEWAY));
  }

  stop(): void {
    this.#subscriber.off('messageBuffer', this.#onMessage);
    this.#subscriber.off('ready', this.#onReady);
    this.#listeners.clear();
  }

  /** Calls `listener` whenever a part of the request is answered. @returns what ends that. */
  listen(requestId: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(requestId) ?? new Set();
    this.#listeners.set(requestId, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(requestId) === listeners) {
        this.#listeners.delete(requestId);
      }
    };
  }

  /** Tells the listeners of all gateways that something was done to a request; its answer is not to come. */
  async tellAll(requestId: string): Promise<void> {
    const message = publishedReply(NOTHING, { requestId, firstItem: 0 }, ANY_GATEWAY);
    await this.#redis.publish(replyChannel(ANY_GATEWAY), packReplies([message]));
  }

  #tell(requestId: string): void {
    for (const listener of [...(this.#listeners.get(requestId) ?? [])]) listener();
  }

  #receive(message: Buffer): void {
    for (const reply of readReplies(message)) if ('requestId' in reply) this.#tell(reply.requestId);
  }

  #tellOfAll(): void {
    for (const requestId of [...this.#listeners.keys()]) this.#tell(requestId);
  }
}
