/** Most lines of a stream that are under way: read, and their answers not out. */
const MOST_LINES = 1024;
/** Most items of theirs; a line of more goes alone. */
const MOST_ITEMS = 4096;
/** Most bytes of theirs, of a line until it is answered, of its answer from then on; a line of more goes alone. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Lines that a stream begins with. */
const FIRST_LINES = 32;
/** Fewest lines, whatever was refused. */
const FEWEST_LINES = 4;
/** How much of a line more each answer allows once some were refused: slower than at the beginning, as TCP does. */
const CAREFUL = 1 / 16;
/** Refusals within so many ms are one: what was sent together is refused together. */
const ONE_REFUSAL_MS = 500;

/**
 * How much of a stream is under way. It begins small and doubles with every round of answers until a line is
 * refused; then it halves, and grows slowly from there: so a stream reads about as fast as it can be answered, and
 * little of it is refused.
 */
export class StreamWindow {
  #most = FIRST_LINES;
  #growth = 1;
  #lines = 0;
  #items = 0;
  #bytes = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;

  /** Whether a further line may come in. */
  get open(): boolean {
    if (this.#lines === 0) return true;
    return this.#lines < this.#most && this.#items < MOST_ITEMS && this.#bytes < MOST_BYTES;
  }

  get lines(): number {
    return this.#lines;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A line was read. */
  enter(bytes: number): void {
    this.#lines += 1;
    this.#bytes += bytes;
  }

  /** Counts what a line has turned out to hold, and what it does not any more. */
  count(items: number, bytes: number): void {
    this.#items += items;
    this.#bytes += bytes;
  }

  /** A line's answer is out. */
  leave(items: number, bytes: number): void {
    this.#lines -= 1;
    this.#items -= items;
    this.#bytes -= bytes;
    this.#most = Math.min(MOST_LINES, this.#most + this.#growth);
  }

  /** A line was refused because too much waits. */
  refused(): void {
    const now = performance.now();
    if (now - this.#refusedAt < ONE_REFUSAL_MS) return;
    this.#refusedAt = now;
    this.#growth = CAREFUL;
    this.#most = Math.max(FEWEST_LINES, Math.min(this.#most, this.#lines) / 2);
  }
}
