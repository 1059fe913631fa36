import type { SessionOptions } from '@millrace/shared';
import { fusionsAtWork } from './fusions.js';
import type { NodeShare } from './node-profile.js';
import type { Duel } from './trial.js';

/** One change that was tried. */
export interface Trial {
  /** As a person reads it: `without SkipLayerNormFusion`. */
  change: string;
  /** taken: faster, from here on part of the best. failed: it doesn't load or run. */
  verdict: 'taken' | 'no gain' | 'outputs differ' | 'failed' | 'no time';
  /** Time of the best before over the time with the change: over 1 is faster. */
  speed?: number;
  /** How far outputs are from the manifest's options'. */
  difference?: Duel['difference'];
  error?: string;
}

export interface SearchTools {
  duel(best: SessionOptions, candidate: SessionOptions): Promise<Duel>;
  profile(options: SessionOptions): Promise<NodeShare[]>;
  hasTime(): boolean;
  onTrial?(trial: Trial): void;
}

export interface SearchLimits {
  /**
   * Mean difference of the items' outputs up to which a change may be taken; a single item may differ by
   * three times as much. See `itemDifferences`.
   */
  tolerance: number;
  /** A change is taken when it makes runs faster by more than this share: less is noise. */
  margin: number;
}

interface Change {
  change: string;
  apply(options: SessionOptions): SessionOptions;
}

const SINGLE_ITEM = 3;
const LEVELS = ['all', 'extended', 'basic', 'disabled'] as const;

/**
 * Looks for faster options of one session: every optimizer at work left out in turn, those of the costliest
 * nodes first; those that the manifest leaves out taken in again; then the other optimization levels. Each
 * change is measured against the best so far and kept if it pays and outputs agree.
 */
export async function searchSession(
  start: SessionOptions,
  tools: SearchTools,
  limits: SearchLimits,
): Promise<{ best: SessionOptions; trials: Trial[] }> {
  const trials: Trial[] = [];
  let best = start;
  const attempt = async ({ change, apply }: Change): Promise<boolean> => {
    const candidate = apply(best);
    const trial = tools.hasTime()
      ? await judge(change, best, candidate, tools, limits)
      : ({ change, verdict: 'no time' } as const);
    trials.push(trial);
    tools.onTrial?.(trial);
    if (trial.verdict === 'taken') best = candidate;
    return trial.verdict === 'taken';
  };

  // What is taken changes the graph: the next one to leave out is chosen by a new profile.
  const tried = new Set<string>(start.disabledOptimizers);
  let atWork = fusionsAtWork(await tools.profile(best));
  for (;;) {
    const optimizers = atWork.find((each) => each.some((name) => !tried.has(name)));
    if (optimizers === undefined) break;
    for (const name of optimizers) tried.add(name);
    const taken = await attempt(without(optimizers));
    if (taken) atWork = fusionsAtWork(await tools.profile(best));
  }
  for (const name of start.disabledOptimizers) await attempt(withAgain(name));
  for (const level of LEVELS) {
    if (level !== start.graphOptimizationLevel) await attempt(atLevel(level));
  }
  return { best, trials };
}

async function judge(
  change: string,
  best: SessionOptions,
  candidate: SessionOptions,
  tools: SearchTools,
  { tolerance, margin }: SearchLimits,
): Promise<Trial> {
  try {
    const { bestMs, candidateMs, difference } = await tools.duel(best, candidate);
    const speed = bestMs / candidateMs;
    const figures = { change, speed, difference };
    if (!(speed > 1 + margin)) return { ...figures, verdict: 'no gain' };
    const agrees = difference.mean <= tolerance && difference.largest <= SINGLE_ITEM * tolerance;
    return { ...figures, verdict: agrees ? 'taken' : 'outputs differ' };
  } catch (error) {
    return { change, verdict: 'failed', error: (error as Error).message };
  }
}

const without = (optimizers: readonly string[]): Change => ({
  change: `without ${optimizers.join(' and ')}`,
  apply: (options) => ({
    ...options,
    disabledOptimizers: [...new Set([...options.disabledOptimizers, ...optimizers])],
  }),
});

const withAgain = (name: string): Change => ({
  change: `with ${name} again`,
  apply: (options) => ({
    ...options,
    disabledOptimizers: options.disabledOptimizers.filter((each) => each !== name),
  }),
});

const atLevel = (graphOptimizationLevel: SessionOptions['graphOptimizationLevel']): Change => ({
  change: `optimization level ${graphOptimizationLevel}`,
  apply: (options) => ({ ...options, graphOptimizationLevel }),
});
