import { MillraceError } from '@millrace/shared';

/** Longest time between two looks for calls that are too slow, in ms. */
const CHECK_MS = 5_000;

/** A call of which a message is expected. */
interface Arriving {
  fail(error: MillraceError): void;
}

/** The calls whose message has not come yet: one that comes too slowly would hold its room for ever. */
export class Arrivals {
  readonly #since = new Map<Arriving, number>();
  readonly #mostMs: number;
  readonly #timer: NodeJS.Timeout;

  /** @param mostMs how long a message may take. */
  constructor(mostMs: number) {
    this.#mostMs = mostMs;
    this.#timer = setInterval(() => this.#check(), Math.min(CHECK_MS, mostMs / 4));
    this.#timer.unref();
  }

  await(call: Arriving): void {
    if (!this.#since.has(call)) this.#since.set(call, performance.now());
  }

  settle(call: Arriving): void {
    this.#since.delete(call);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const latest = performance.now() - this.#mostMs;
    for (const [call, since] of this.#since) {
      // The map keeps the order in which they came.
      if (since > latest) return;
      this.#since.delete(call);
      call.fail(new MillraceError('request_timeout'));
    }
  }
}
