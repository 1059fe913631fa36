import type { SessionOptions } from '@millrace/shared';
import { expect } from 'chai';
import { chooseByPath, finalists, layouts, medianOf, type PathFigures } from './layouts.js';

const shape = ({ threads, intraOpThreads, allowSpinning }: ReturnType<typeof layouts>[number]): string =>
  `${threads}x${intraOpThreads}${allowSpinning ? ' spinning' : ''}`;

function figures(threads: number, rounds: number[], failed = 0): PathFigures {
  const options: SessionOptions = {
    threads,
    intraOpThreads: 1,
    allowSpinning: false,
    graphOptimizationLevel: 'all',
    disabledOptimizers: [],
  };
  return { options, rounds, failed };
}

describe('how the cores are shared out', () => {
  it('is tried in every way that fits, with one core left over too', () => {
    expect(layouts(2).map(shape)).to.deep.equal(['2x1', '1x1', '1x2', '1x2 spinning']);
    const many = layouts(8);
    expect(many.map(shape)).to.include.members(['8x1', '7x1', '4x2', '3x2 spinning', '1x8']);
    expect(many.every(({ threads, intraOpThreads }) => threads * intraOpThreads <= 8)).to.equal(true);
    expect(layouts(1).map(shape)).to.deep.equal(['1x1']);
  });

  it('keeps to a thread count that a person set', () => {
    expect(new Set(layouts(4, 2).map(({ threads }) => threads))).to.deep.equal(new Set([2]));
  });

  it('goes on to the whole path with the best of each thread count that can win', () => {
    const raw = (threads: number, intraOpThreads: number, rawItemsPerSecond: number) => ({
      threads,
      intraOpThreads,
      allowSpinning: false,
      rawItemsPerSecond,
    });
    const found = finalists([
      raw(4, 1, 1000),
      raw(3, 1, 900),
      raw(2, 2, 700),
      raw(1, 4, 300),
      raw(1, 1, 250),
    ]);
    expect(found.map(({ threads }) => threads)).to.deep.equal([4, 3, 2]);
    expect(finalists([raw(2, 1, 100), raw(1, 1, 60), raw(1, 2, 80)]).map(shape)).to.deep.equal([
      '2x1',
      '1x2',
    ]);
  });

  it('is chosen by the middle round of the whole path', () => {
    expect(medianOf([3, 1, 2])).to.equal(2);
    expect(medianOf([1, 2, 4, 100])).to.equal(3);
    expect(medianOf([])).to.equal(0);
    const best = figures(1, [120, 118, 102]);
    const manifest = figures(2, [100, 101, 99]);
    expect(chooseByPath([manifest, figures(3, [110, 110, 190]), best], 0.03)).to.equal(best);
  });

  it('stays as the manifest has it for a gain within the noise', () => {
    const manifest = figures(2, [100, 100, 100]);
    expect(chooseByPath([manifest, figures(1, [102, 102, 102])], 0.03)).to.equal(manifest);
    expect(chooseByPath([manifest, figures(1, [150, 150, 90])], 0.03)).to.equal(manifest);
  });

  it('is never one that failed requests', () => {
    const manifest = figures(2, [100]);
    expect(chooseByPath([manifest, figures(1, [200], 3)], 0.03)).to.equal(manifest);
    expect(chooseByPath([figures(2, [100], 1)], 0.03)).to.equal(undefined);
  });
});
