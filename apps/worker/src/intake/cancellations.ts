import { cancelKey, controlChannel } from '@millrace/shared';
import type { Redis } from 'ioredis';

/** Cancels are remembered at least this long: a job fetched just after its cancel is dropped too. */
const REMEMBER_MS = 60_000;

/** The cancelled requests of one queue, as its gateways tell them. */
export class Cancellations {
  /** Two generations, swapped when the younger is old enough, so that forgetting costs nothing a request. */
  #young = new Set<string>();
  #old = new Set<string>();
  readonly #redis: Redis;
  readonly #queue: string;
  readonly #forgetting: NodeJS.Timeout;
  #onCancel: (requestId: string) => void = () => undefined;

  /** `subscriber` may be shared by queues; `redis` reads tombstones. */
  constructor(queue: string, redis: Redis) {
    this.#queue = queue;
    this.#redis = redis;
    this.#forgetting = setInterval(() => {
      this.#old = this.#young;
      this.#young = new Set();
    }, REMEMBER_MS);
  }

  /** @param held the requests that this worker holds work of. */
  async start(
    subscriber: Redis,
    onCancel: (requestId: string) => void,
    held: () => readonly string[],
  ): Promise<void> {
    this.#onCancel = onCancel;
    const channel = controlChannel(this.#queue);
    subscriber.on('message', (from: string, requestId: string) => {
      if (from === channel) this.#add(requestId);
    });
    await subscriber.subscribe(channel);
    // What was said while the connection was broken is read from the tombstones.
    subscriber.on('ready', () => {
      this.check(held()).catch(() => undefined);
    });
  }

  has(requestId: string): boolean {
    return this.#young.has(requestId) || this.#old.has(requestId);
  }

  /** Reads the tombstones of requests whose message may have been missed. */
  async check(requestIds: readonly string[]): Promise<void> {
    if (requestIds.length === 0) return;
    const stones = await this.#redis.mget(requestIds.map((id) => cancelKey(this.#queue, id)));
    for (const [i, stone] of stones.entries()) {
      const id = requestIds[i];
      if (stone !== null && id !== undefined) this.#add(id);
    }
  }

  stop(): void {
    clearInterval(this.#forgetting);
  }

  #add(requestId: string): void {
    this.#young.add(requestId);
    this.#onCancel(requestId);
  }
}
