import { type GatewayMetrics, type Logger, MillraceError, queueName } from '@millrace/shared';
import type { ClientGone } from './client-gone.js';
import { DeadlineWheel } from './deadline-wheel.js';
import type { PlannedPart } from './parts.js';
import { PendingRequest } from './pending-request.js';
import { type ReplyAddress, type ReplyStore, tryDecodeReply } from './reply-store.js';

/** Longest time that the last look at the store may take, in ms. */
const LAST_LOOK_MS = 250;

/**
 * The requests of this gateway that wait for their replies. A request is registered before it is enqueued,
 * so that no reply can come before its waiter.
 */
export class ReplyWaiter {
  readonly #pending = new Map<string, PendingRequest>();
  readonly #store: ReplyStore;
  readonly #metrics: GatewayMetrics;
  readonly #logger: Logger;
  readonly #deadlines: DeadlineWheel<PendingRequest>;
  #bytes = 0;

  constructor(store: ReplyStore, metrics: GatewayMetrics, logger: Logger) {
    this.#store = store;
    this.#metrics = metrics;
    this.#logger = logger;
    this.#deadlines = new DeadlineWheel((pending) => this.#expire(pending));
  }

  /** Input bytes of all waiting requests. */
  get waitingBytes(): number {
    return this.#bytes;
  }

  /** The waiting requests, for looking after them when a connection comes back. */
  waiting(): PendingRequest[] {
    return [...this.#pending.values()];
  }

  /**
   * Starts waiting; call {@link release} once the answer is settled.
   * @param waitMs from now until the request is given up, in ms.
   */
  register(
    requestId: string,
    queue: string,
    parts: readonly PlannedPart[],
    waitMs: number,
    client: ClientGone,
  ): PendingRequest {
    const pending = new PendingRequest(requestId, queue, parts, performance.now() + waitMs);
    this.#pending.set(requestId, pending);
    this.#deadlines.add(pending, pending.expiresAt);
    this.#count(pending.bytes);
    client.listen(() => pending.fail(new MillraceError('cancelled')));
    return pending;
  }

  release(pending: PendingRequest): void {
    if (!this.#pending.delete(pending.requestId)) return;
    this.#deadlines.remove(pending, pending.expiresAt);
    this.#count(-pending.bytes);
  }

  /** Takes a reply as it was stored or published, of this gateway's requests or of one given up. */
  accept(stored: Buffer): void {
    const reply = tryDecodeReply(stored);
    if ('error' in reply) {
      this.#logger.error({ err: reply.error, requestId: reply.requestId }, 'a reply could not be read');
      this.#pending.get(reply.requestId ?? '')?.fail(reply.error);
      return;
    }
    const { requestId, firstItem, model, version } = reply.header;
    this.#store.received(queueName(model, version), requestId, firstItem);
    this.#pending.get(requestId)?.deliver(reply);
  }

  /** Fetches a reply of which only the address was published. */
  acceptReference(address: ReplyAddress): void {
    const pending = this.#pending.get(address.requestId);
    if (!pending) return;
    this.#store.readLarge(pending.queue, address).then(
      (stored) => {
        if (stored) this.accept(stored);
      },
      (err: unknown) => {
        // It is looked for again when the connection is back, and at the deadline.
        this.#logger.warn({ err, requestId: address.requestId }, 'a large reply could not be fetched');
      },
    );
  }

  /** Looks in the store for every reply that these requests still miss: messages can be lost, keys are not. */
  async collect(requests: readonly PendingRequest[]): Promise<void> {
    const missing = new Map<string, ReplyAddress[]>();
    for (const pending of requests) {
      const addresses = missing.get(pending.queue) ?? [];
      for (const { firstItem } of pending.unanswered()) {
        addresses.push({ requestId: pending.requestId, firstItem });
      }
      missing.set(pending.queue, addresses);
    }
    await Promise.all([...missing].map(([queue, addresses]) => this.#fetch(queue, addresses)));
  }

  /** Gives up on all that still wait. */
  failAll(error: Error): void {
    for (const pending of this.waiting()) pending.fail(error);
  }

  stop(): void {
    this.#deadlines.stop();
  }

  async #fetch(queue: string, addresses: readonly ReplyAddress[]): Promise<void> {
    for (const stored of await this.#store.read(queue, addresses)) if (stored) this.accept(stored);
  }

  /** One last look, before the client is told that no answer came. A Redis that hangs isn't waited for. */
  #expire(pending: PendingRequest): void {
    const late = (): void => pending.fail(new MillraceError('deadline_exceeded'));
    const timer = setTimeout(late, LAST_LOOK_MS);
    this.collect([pending])
      .then(late, late)
      .finally(() => clearTimeout(timer));
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#metrics.waiting.set(this.#pending.size);
    this.#metrics.waitingBytes.set(this.#bytes);
  }
}
