/** Lets at most so many calls to one host, or of one name, be under way at a time; the others wait for their turn. */
export class HostGates {
  readonly #most: number;
  readonly #hosts = new Map<string, { open: number; waiting: (() => void)[] }>();

  constructor(most: number) {
    this.#most = most;
  }

  async pass<T>(host: string, run: () => Promise<T>): Promise<T> {
    const gate = this.#hosts.get(host) ?? { open: 0, waiting: [] };
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
}
