/** Time and chance, so that tests can bring their own. */
export interface Clock {
  /** Ms since any moment; never goes back. */
  now(): number;
  /** Ms since 1970. */
  epochMs(): number;
  /** Calls `then` after `ms`. @returns what keeps it from being called. */
  after(ms: number, then: () => void): () => void;
  /** In [0, 1). */
  random(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  after(ms, then) {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};
