import type { SessionOptions } from '@millrace/shared';

/** How the cores are shared out: so many session threads of so many threads inside a run. */
export type Layout = Pick<SessionOptions, 'threads' | 'intraOpThreads' | 'allowSpinning'>;

export interface MeasuredLayout extends Layout {
  /** By plain session threads, nothing else running. */
  rawItemsPerSecond: number;
}

/** A layout slower than this share of the fastest by its sessions alone can't be the best of the whole path. */
const WORTH_A_LOOK = 0.5;
/** Layouts are measured over the whole path; each costs seconds. */
const MOST_FINALISTS = 3;

/** Every layout worth measuring on so many cores; a thread count that a person set is not questioned. */
export function layouts(cores: number, threadsSet = 0): Layout[] {
  const found: Layout[] = [];
  for (let intraOpThreads = 1; intraOpThreads <= cores; intraOpThreads *= 2) {
    const full = Math.floor(cores / intraOpThreads);
    // One thread fewer leaves a core to the rest of the path.
    const counts = threadsSet > 0 ? [threadsSet] : [...new Set([full, Math.max(1, full - 1)])];
    for (const threads of counts) {
      if (threads > 1 && threads * intraOpThreads > cores && threadsSet === 0) continue;
      found.push({ threads, intraOpThreads, allowSpinning: false });
      // A single thread has nobody to wait for.
      if (intraOpThreads > 1) found.push({ threads, intraOpThreads, allowSpinning: true });
    }
  }
  return found;
}

/** Of each thread count the fastest by itself, and of those the few that can win over the whole path. */
export function finalists(measured: readonly MeasuredLayout[]): MeasuredLayout[] {
  const byThreads = new Map<number, MeasuredLayout>();
  for (const layout of measured) {
    const known = byThreads.get(layout.threads);
    if (!known || layout.rawItemsPerSecond > known.rawItemsPerSecond) byThreads.set(layout.threads, layout);
  }
  const sorted = [...byThreads.values()].sort((a, b) => b.rawItemsPerSecond - a.rawItemsPerSecond);
  const most = sorted[0]?.rawItemsPerSecond ?? 0;
  return sorted.filter((each) => each.rawItemsPerSecond >= WORTH_A_LOOK * most).slice(0, MOST_FINALISTS);
}

/** One set of options measured over the whole path. */
export interface PathFigures {
  options: SessionOptions;
  /** Requests a second of one item, a figure a round; empty when it could not be measured. */
  rounds: number[];
  /** Requests that failed. */
  failed: number;
}

/** The middle of the rounds; 0 without any. */
export function medianOf(rounds: readonly number[]): number {
  const sorted = rounds.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

/**
 * The fastest by its median; the first, the manifest's, unless another is faster by more than `margin` and in
 * every single round, so that a disturbed machine changes nothing. One that failed requests is out.
 */
export function chooseByPath(figures: readonly PathFigures[], margin: number): PathFigures | undefined {
  const [first, ...others] = figures.filter(({ rounds, failed }) => rounds.length > 0 && failed === 0);
  if (!first) return undefined;
  const surely = others.filter(
    ({ rounds }) =>
      rounds.every((round, i) => round > (first.rounds[i] ?? 0)) &&
      medianOf(rounds) > medianOf(first.rounds) * (1 + margin),
  );
  return surely.reduce((a, b) => (medianOf(b.rounds) > medianOf(a.rounds) ? b : a), surely[0] ?? first);
}
