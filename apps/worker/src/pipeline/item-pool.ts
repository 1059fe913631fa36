import type { HeldItem } from '../intake/held-part.js';

/** Prepared items that wait for a session. */
export class ItemPool {
  readonly #items = new Set<HeldItem>();
  #size = 0;

  get count(): number {
    return this.#items.size;
  }

  /** Sizes added up, in tokens or elements. */
  get size(): number {
    return this.#size;
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
    }
  }

  take(items: readonly HeldItem[]): void {
    for (const item of items) if (this.#items.delete(item)) this.#size -= item.size;
  }

  /** Takes out every item that `matches`. */
  takeWhere(matches: (item: HeldItem) => boolean): HeldItem[] {
    const taken = [...this.#items].filter(matches);
    this.take(taken);
    return taken;
  }
}
