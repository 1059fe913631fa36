/** What is put off comes again after this at the soonest, in ms, and one so much after the other. */
const SOONEST_MS = 500;
const APART_MS = 5;

interface Gate {
  open: number;
  waiting: (() => void)[];
  /** When the last of those that were put off comes again, in ms of the monotonic clock. */
  lastAt: number;
}

/** Lets at most so many calls to one host, or of one name, be under way at a time; the others wait for their turn. */
export class HostGates {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #hosts = new Map<string, Gate>();

  /** @param mostWaiting for one host before {@link putOffMs} puts off the next. */
  constructor(most: number, mostWaiting = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  async pass<T>(host: string, run: () => Promise<T>): Promise<T> {
    const gate = this.#hosts.get(host) ?? { open: 0, waiting: [], lastAt: 0 };
    this.#hosts.set(host, gate);
    if (gate.open >= this.#most) await new Promise<void>((resolve) => gate.waiting.push(resolve));
    else gate.open += 1;
    try {
      return await run();
    } finally {
      const next = gate.waiting.shift();
      // Its place goes to the next in line.
      if (next) next();
      else {
        gate.open -= 1;
        if (gate.open === 0) this.#hosts.delete(host);
      }
    }
  }

  /**
   * For whoever should not wait behind many others.
   * @returns after how many ms to come again, where as many wait for a host already as may; otherwise undefined. Those
   * that are put off come one after the other.
   */
  putOffMs(host: string): number | undefined {
    const gate = this.#hosts.get(host);
    if (!gate || gate.waiting.length < this.#mostWaiting) return undefined;
    const now = performance.now();
    gate.lastAt = Math.max(gate.lastAt + APART_MS, now + SOONEST_MS);
    return gate.lastAt - now;
  }
}
