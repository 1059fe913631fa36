import type { HeldItem } from '../intake/held-job.js';

/** Prepared items that wait for a session. */
export class ItemPool {
  readonly #items = new Set<HeldItem>();
  #size = 0;
  #ms = 0;
  #bulkMs = 0;

  /** `itemMs`: predicted ms that an item of a size adds to a run. */
  constructor(private readonly itemMs: (size: number) => number) {}

  get count(): number {
    return this.#items.size;
  }

  /** Sizes added up, in tokens or elements. */
  get size(): number {
    return this.#size;
  }

  /** Predicted ms of all that waits, at rest. */
  get ms(): number {
    return this.#ms;
  }

  /** The same of bulk items. */
  get bulkMs(): number {
    return this.#bulkMs;
  }

  get items(): readonly HeldItem[] {
    return [...this.#items];
  }

  get oldestEnqueuedAt(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const item of this.#items) oldest = Math.min(oldest, item.enqueuedAt);
    return oldest;
  }

  add(items: readonly HeldItem[]): void {
    for (const item of items) {
      if (this.#items.has(item)) continue;
      this.#items.add(item);
      this.#count(item, 1);
    }
  }

  take(items: readonly HeldItem[]): void {
    for (const item of items) {
      if (this.#items.delete(item)) this.#count(item, -1);
    }
  }

  /** Takes out every item that `matches`. */
  takeWhere(matches: (item: HeldItem) => boolean): HeldItem[] {
    const taken = [...this.#items].filter(matches);
    this.take(taken);
    return taken;
  }

  #count(item: HeldItem, sign: 1 | -1): void {
    const ms = sign * this.itemMs(item.size);
    this.#size += sign * item.size;
    this.#ms += ms;
    if (item.bulk) this.#bulkMs += ms;
  }
}
