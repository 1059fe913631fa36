/**
 * How much of a stream is under way at once: read and not yet written. It bounds memory, and what of a stream waits in
 * queues ahead of others.
 */
export class LineWindow {
  readonly #mostItems: number;
  readonly #mostBytes: number;
  readonly #groupItems: number;
  #items = 0;
  #bytes = 0;
  #wake: (() => void) | undefined;
  #isAwaited: () => boolean = () => true;

  /**
   * @param groupItems who waits for room is woken when there is room for so many items: lines that are read one by one
   * would run one by one.
   */
  constructor(mostItems: number, mostBytes: number, groupItems: number) {
    this.#mostItems = mostItems;
    this.#mostBytes = mostBytes;
    this.#groupItems = groupItems;
  }

  /** Whether something more may be read. */
  get hasRoom(): boolean {
    return this.#items < this.#mostItems && this.#bytes < this.#mostBytes;
  }

  get isEmpty(): boolean {
    return this.#items <= 0;
  }

  enter(items: number, bytes: number): void {
    this.#items += items;
    this.#bytes += bytes;
  }

  leave(items: number, bytes: number): void {
    this.#items -= items;
    this.#bytes -= bytes;
    if (this.#isAwaited()) this.wake();
  }

  /** Resolves when there is room for a group, or when it is woken. One waits at a time. */
  room(): Promise<void> {
    return this.#wait(
      () =>
        this.isEmpty || (this.#items + this.#groupItems <= this.#mostItems && this.#bytes < this.#mostBytes),
    );
  }

  /** Resolves when nothing is under way, or when it is woken. One waits at a time. */
  empty(): Promise<void> {
    return this.#wait(() => this.isEmpty);
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #wait(isAwaited: () => boolean): Promise<void> {
    if (isAwaited()) return Promise.resolve();
    this.#isAwaited = isAwaited;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
