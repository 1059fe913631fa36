import type { HeldItem } from '../intake/held-job.js';

/** Prepared items that wait for a session. */
export class ItemPool {
  readonly #items = new Set<HeldItem>();
  #size = 0;
  #ms = 0;

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
      this.#size += item.size;
      this.#ms += this.itemMs(item.size);
    }
  }

  take(items: readonly HeldItem[]): void {
    for (const item of items) {
      if (!this.#items.delete(item)) continue;
      this.#size -= item.size;
      this.#ms -= this.itemMs(item.size);
    }
  }

  /** Takes out every item that `matches`. */
  takeWhere(matches: (item: HeldItem) => boolean): HeldItem[] {
    const taken = [...this.#items].filter(matches);
    this.take(taken);
    return taken;
  }
}
