import type { History } from './history.js';

/** After the last fault, throughput has this long to come back, in ms, and must come back to this share. */
const BACK_WITHIN_MS = 10_000;
const BACK_TO = 0.9;
/** Throughput is counted over this long, in ms: long enough that a garbage collection is no fault. */
const WINDOW_MS = 3000;
const STEP_MS = 100;

export interface Recovery {
  /** Right answers a second. */
  before: number;
  after: number;
  problem?: string;
}

/** Whether throughput came back after the faults to what it was before them. */
export function recovery({ requests, faults, calm }: History): Recovery {
  const answers = requests
    .flatMap(({ outcome, endedAt }) => (outcome.is === 'values' && endedAt !== undefined ? [endedAt] : []))
    .sort((a, b) => a - b);
  const before = rate(answers, calm.from, calm.to);
  const ended = Math.max(calm.to, ...faults.map(({ to }) => to));
  const last = Math.min(ended + BACK_WITHIN_MS, answers.at(-1) ?? 0);
  let after = 0;
  for (let from = ended; from + WINDOW_MS <= last; from += STEP_MS) {
    after = Math.max(after, rate(answers, from, from + WINDOW_MS));
  }
  const rounded = { before: Number(before.toFixed(1)), after: Number(after.toFixed(1)) };
  if (before > 0 && after >= before * BACK_TO) return rounded;
  return {
    ...rounded,
    problem: `throughput was ${rounded.before}/s before the faults and at best ${rounded.after}/s in the 10 s after`,
  };
}

function rate(sorted: readonly number[], from: number, to: number): number {
  const count = sorted.filter((at) => at >= from && at < to).length;
  return (count * 1000) / (to - from);
}
