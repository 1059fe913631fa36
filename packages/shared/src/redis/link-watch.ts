import type { Redis } from 'ioredis';

const ASK_MS = 500;
/** A link that has not answered for this long, in ms, is no link for new work; what was accepted goes on waiting. */
const SILENT_MS = 1000;
/** After this long, in ms, it is given up and made anew: a peer that vanished without a word never closes it. */
const DEAD_MS = 3000;

/**
 * Asks a connection's Redis whether it is there, for a half-open connection looks like a quiet one: TCP tells
 * of it after minutes. Takes a PING twice a second, none a request.
 */
export class LinkWatch {
  readonly #redis: Redis;
  readonly #onRoundTrip: (ms: number) => void;
  #timer: NodeJS.Timeout | undefined;
  #checkedAt = 0;
  /** Since when a question is open, in ms of the monotonic clock. */
  #askedAt: number | undefined;
  /** Since when a new connection waits for the answers to its greeting. */
  #greetedAt: number | undefined;

  /** @param onRoundTrip told of each answer's round trip in ms. */
  constructor(redis: Redis, onRoundTrip: (ms: number) => void = () => undefined) {
    this.#redis = redis;
    this.#onRoundTrip = onRoundTrip;
  }

  /** Whether the connection stands and its Redis answered lately. */
  get answering(): boolean {
    if (this.#redis.status !== 'ready') return false;
    return this.#askedAt === undefined || performance.now() - this.#askedAt < SILENT_MS;
  }

  start(): void {
    this.#checkedAt = performance.now();
    this.#timer = setInterval(() => this.#check(), ASK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#askedAt = undefined;
  }

  #check(): void {
    const now = performance.now();
    // This process was held up, not Redis: its answer may lie here unread.
    const heldUp = now - this.#checkedAt > 2 * ASK_MS;
    this.#checkedAt = now;
    if (this.#redis.status !== 'connect') this.#greetedAt = undefined;
    if (this.#redis.status !== 'ready') {
      this.#askedAt = undefined;
      if (this.#redis.status !== 'connect') return;
      this.#greetedAt ??= now;
      // A Redis that hangs takes connections all the same; by the next one another may be at its address.
      if (now - this.#greetedAt > DEAD_MS && !heldUp) this.#giveUp();
    } else if (this.#askedAt === undefined) {
      this.#ask(now);
    } else if (now - this.#askedAt > DEAD_MS && !heldUp) {
      this.#askedAt = undefined;
      this.#giveUp();
    }
  }

  #giveUp(): void {
    this.#greetedAt = undefined;
    this.#redis.stream.destroy(new Error(`Redis has not answered for ${DEAD_MS} ms.`));
  }

  #ask(now: number): void {
    this.#askedAt = now;
    const settle = (): boolean => {
      if (this.#askedAt !== now) return false;
      this.#askedAt = undefined;
      return true;
    };
    this.#redis.ping().then(
      () => {
        if (settle()) this.#onRoundTrip(performance.now() - now);
      },
      () => settle(),
    );
  }
}
