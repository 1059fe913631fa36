import type { Redis } from 'ioredis';

const REFRESH_MS = 10_000;

/**
 * Epoch milliseconds of Redis's clock, read from the process's monotonic clock plus an offset, so that
 * stamps of different machines compare and a jump of the local wall clock changes nothing.
 */
export class RedisClock {
  #offsetMs = performance.timeOrigin;
  #timer: NodeJS.Timeout | undefined;

  now(): number {
    return performance.now() + this.#offsetMs;
  }

  /** Measures the offset now and every 10 s until {@link stop}. Throws if the first reading fails. */
  async start(redis: Redis): Promise<void> {
    await this.#measure(redis);
    this.#timer = setInterval(() => {
      // A reading missed while Redis is away is made up for ten seconds later.
      this.#measure(redis).catch(() => undefined);
    }, REFRESH_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The best of three readings: the shorter the round trip, the less the offset can be wrong. */
  async #measure(redis: Redis): Promise<void> {
    let best = Number.POSITIVE_INFINITY;
    let offset = this.#offsetMs;
    for (let i = 0; i < 3; i++) {
      const before = performance.now();
      const [seconds, micros] = await redis.time();
      const roundTrip = performance.now() - before;
      if (roundTrip < best) {
        best = roundTrip;
        offset = Number(seconds) * 1000 + Number(micros) / 1000 - (before + roundTrip / 2);
      }
    }
    this.#offsetMs = offset;
  }
}
