import type { SessionOptions } from '@millrace/shared';
import { expect } from 'chai';
import { type SearchTools, searchSession, type Trial } from './search.js';
import type { Duel } from './trial.js';

const START: SessionOptions = {
  threads: 0,
  intraOpThreads: 1,
  allowSpinning: false,
  graphOptimizationLevel: 'all',
  disabledOptimizers: [],
};
const LIMITS = { tolerance: 0.05, margin: 0.03 };
const EQUAL = { mean: 0, largest: 0 };

/** A machine on which each set of options takes `ms`, and some differ in their outputs. */
function machine(
  ms: (options: SessionOptions) => number,
  difference: (options: SessionOptions) => Duel['difference'] = () => EQUAL,
): SearchTools & { profiles: number } {
  return {
    profiles: 0,
    duel: async (best, candidate) => ({
      bestMs: ms(best),
      candidateMs: ms(candidate),
      difference: difference(candidate),
    }),
    async profile({ disabledOptimizers }) {
      this.profiles++;
      const skip = disabledOptimizers.includes('SkipLayerNormFusion')
        ? 'LayerNormalization'
        : 'SkipLayerNormalization';
      return [
        { kind: 'BiasGelu', share: 0.1, nodes: 6 },
        { kind: skip, share: 0.3, nodes: 12 },
        { kind: 'MatMul', share: 0.6, nodes: 6 },
      ];
    },
    hasTime: () => true,
  };
}

const has = (options: SessionOptions, name: string): boolean => options.disabledOptimizers.includes(name);
const verdicts = (trials: Trial[]) => Object.fromEntries(trials.map((t) => [t.change, t.verdict]));

describe('the search for session options', () => {
  it('leaves out what costs, the costliest nodes first, and keeps what pays', async () => {
    const tools = machine((options) => (has(options, 'SkipLayerNormFusion') ? 75 : 100));
    const { best, trials } = await searchSession(START, tools, LIMITS);
    expect(best).to.deep.equal({ ...START, disabledOptimizers: ['SkipLayerNormFusion'] });
    expect(trials[0]).to.deep.include({ change: 'without SkipLayerNormFusion', verdict: 'taken' });
    expect(trials[0]?.speed).to.be.closeTo(4 / 3, 1e-9);
    // What the new graph is made of is tried too.
    expect(verdicts(trials)).to.include({ 'without LayerNormFusionL1 and LayerNormFusionL2': 'no gain' });
    expect(tools.profiles).to.equal(2);
  });

  it('takes several changes together', async () => {
    const tools = machine(
      (options) =>
        100 -
        (has(options, 'BiasGeluFusion') ? 10 : 0) -
        (options.graphOptimizationLevel === 'basic' ? 20 : 0),
    );
    const { best } = await searchSession(START, tools, LIMITS);
    expect(best.disabledOptimizers).to.deep.equal(['BiasGeluFusion']);
    expect(best.graphOptimizationLevel).to.equal('basic');
  });

  it('takes nothing for a gain within the noise', async () => {
    const tools = machine((options) => (options === START ? 100 : 98));
    const { best, trials } = await searchSession(START, tools, LIMITS);
    expect(best).to.equal(START);
    expect(new Set(trials.map(({ verdict }) => verdict))).to.deep.equal(new Set(['no gain']));
  });

  it('refuses a faster change whose outputs differ, on the whole or in one item', async () => {
    for (const difference of [
      { mean: 0.06, largest: 0.06 },
      { mean: 0.01, largest: 0.2 },
      { mean: Number.NaN, largest: Number.NaN },
    ]) {
      const tools = machine(
        (options) => (has(options, 'SkipLayerNormFusion') ? 50 : 100),
        (options) => (has(options, 'SkipLayerNormFusion') ? difference : EQUAL),
      );
      const { best, trials } = await searchSession(START, tools, LIMITS);
      expect(best).to.equal(START);
      expect(verdicts(trials)).to.include({ 'without SkipLayerNormFusion': 'outputs differ' });
    }
  });

  it('takes in again what the manifest leaves out for nothing', async () => {
    const start = { ...START, disabledOptimizers: ['SkipLayerNormFusion'] };
    const tools = machine((options) => (has(options, 'SkipLayerNormFusion') ? 100 : 80));
    const { best } = await searchSession(start, tools, LIMITS);
    expect(best.disabledOptimizers).to.deep.equal([]);
  });

  it('goes on past options that do not load', async () => {
    const tools = machine((options) => {
      if (has(options, 'SkipLayerNormFusion')) throw new Error('no such kernel');
      return options.graphOptimizationLevel === 'extended' ? 50 : 100;
    });
    const { best, trials } = await searchSession(START, tools, LIMITS);
    expect(trials[0]).to.deep.equal({
      change: 'without SkipLayerNormFusion',
      verdict: 'failed',
      error: 'no such kernel',
    });
    expect(best.graphOptimizationLevel).to.equal('extended');
  });

  it('says what it had no time for', async () => {
    let duels = 0;
    const tools = { ...machine(() => 100), hasTime: () => duels++ < 1 };
    const { trials } = await searchSession(START, tools, LIMITS);
    expect(trials.map(({ verdict }) => verdict)).to.deep.equal([
      'no gain',
      ...new Array(trials.length - 1).fill('no time'),
    ]);
    expect(trials).to.have.length.above(3);
  });
});
