/**
 * Hold-ups are seen by a timer being late for its tick. (perf_hooks' histogram of the delay loses a hold-up
 * across which it is read and reset.)
 */
const TICK_MS = 100;
const TICKS_A_LOOK = 10;
/**
 * A loop held up for this long, in ms, again and again, answers late and renews its locks (3 s, each second)
 * at the last moment: work should go elsewhere. One such hold-up alone says nothing.
 */
const LONG_MS = 1000;
const LOOKS = 3;

/** How long a process's event loop is held up. */
export class LoopWatch {
  readonly #onLook: (longestMs: number) => void;
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = 0;
  #lookedAt = 0;
  #longestMs = 0;
  #long = 0;

  /** @param onLook told about each second of the longest hold-up since the last time, in ms. */
  constructor(onLook: (longestMs: number) => void) {
    this.#onLook = onLook;
  }

  /** Whether it was held up for long in each of the last looks. */
  get lagging(): boolean {
    return this.#long >= LOOKS;
  }

  start(): void {
    this.#tickedAt = performance.now();
    this.#lookedAt = this.#tickedAt;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - this.#tickedAt - TICK_MS);
    this.#tickedAt = now;
    if (now - this.#lookedAt < TICK_MS * TICKS_A_LOOK) return;
    this.#lookedAt = now;
    this.#long = this.#longestMs >= LONG_MS ? this.#long + 1 : 0;
    this.#onLook(this.#longestMs);
    this.#longestMs = 0;
  }
}
