/** Width of a slot: a deadline is noticed at most this much late. */
const SLOT_MS = 20;

/**
 * Deadlines of many entries with one timer: entries lie in slots of 20 ms, and each tick takes the slots
 * that have passed. Adding and removing an entry costs one set operation, unlike a timer of its own.
 */
export class DeadlineWheel<Entry> {
  readonly #slots = new Map<number, Set<Entry>>();
  readonly #expire: (entry: Entry) => void;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(expire: (entry: Entry) => void) {
    this.#expire = expire;
  }

  /** Adds an entry that expires at `at`, in ms of the process's monotonic clock; remove it by the same `at`. */
  add(entry: Entry, at: number): void {
    const slot = slotOf(at);
    let entries = this.#slots.get(slot);
    if (!entries) {
      entries = new Set();
      this.#slots.set(slot, entries);
    }
    entries.add(entry);
    if (this.#timer) {
      this.#next = Math.min(this.#next, slot);
      return;
    }
    this.#next = slot;
    this.#timer = setInterval(() => this.#tick(), SLOT_MS);
  }

  remove(entry: Entry, at: number): void {
    const slot = slotOf(at);
    const entries = this.#slots.get(slot);
    if (!entries?.delete(entry)) return;
    if (entries.size === 0) this.#slots.delete(slot);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#slots.clear();
  }

  #tick(): void {
    const now = Math.floor(performance.now() / SLOT_MS);
    for (; this.#next <= now; this.#next++) {
      const entries = this.#slots.get(this.#next);
      if (!entries) continue;
      this.#slots.delete(this.#next);
      for (const entry of entries) this.#expire(entry);
    }
    if (this.#slots.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

/** Rounded up, so that nothing expires early. */
function slotOf(at: number): number {
  return Math.ceil(at / SLOT_MS);
}
