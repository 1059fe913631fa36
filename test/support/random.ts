/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Standard normal numbers, two uniform ones each (Box-Muller). */
export function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Milliseconds to the next of arrivals that are independent of each other: exponential. */
export function arrivalGapMs(random: Random, perSecond: number): number {
  return (-Math.log(1 - random()) * 1000) / perSecond;
}
