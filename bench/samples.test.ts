import { expect } from 'chai';
import {
  afterSeconds,
  fifthsOf,
  growthShare,
  handleCount,
  residentMb,
  Sampler,
  type Series,
  thirdsOf,
} from './run/samples.js';

const series = (value: (second: number) => number, seconds = 100): Series => {
  const at = Array.from({ length: seconds }, (_, second) => second);
  return { at, values: at.map(value) };
};

describe("the bench's samples", () => {
  it('grow by the slope of the line that fits them', () => {
    expect(growthShare(series(() => 50))).to.equal(0);
    // From 100 to 199, of a mean of 149.5.
    expect(growthShare(series((second) => 100 + second))).to.be.closeTo(99 / 149.5, 1e-9);
    expect(growthShare(series((second) => 200 - second))).to.be.below(-0.5);
    // A saw tooth, as a heap between collections, is flat.
    expect(Math.abs(growthShare(series((second) => 100 + (second % 5))))).to.be.below(0.005);
    // A share of a small number is measured against the floor.
    expect(
      growthShare(
        series((second) => (second < 50 ? 10 : 11)),
        200,
      ),
    ).to.be.below(0.01);
    expect(growthShare({ at: [], values: [] })).to.equal(0);
  });

  it('are compared by thirds, and from a moment on', () => {
    const step = series((second) => (second < 50 ? 100 : 120));
    expect(thirdsOf(step)).to.deep.equal({ first: 100, last: 120 });
    expect(thirdsOf({ at: [0], values: [7] })).to.deep.equal({ first: 7, last: 7 });
    expect(
      afterSeconds(
        series((second) => second),
        98,
      ),
    ).to.deep.equal({ at: [98, 99], values: [98, 99] });
    expect(
      afterSeconds(
        series((second) => second),
        1000,
      ),
    ).to.deep.equal({ at: [], values: [] });
  });

  it('are compared by the crests of their first fifth and their last', () => {
    const rising = series((second) => second + (second % 10));
    expect(fifthsOf(rising)).to.deep.equal({ first: 28, last: 108 });
    expect(fifthsOf({ at: [0], values: [7] })).to.deep.equal({ first: 7, last: 7 });
  });

  it('are read of a process', async () => {
    const sampler = new Sampler(5, () => ({
      MB: residentMb(process.pid),
      handles: handleCount(process.pid),
    }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { MB, handles } = await sampler.stop();
    expect(MB?.values.length).to.be.above(1);
    expect(MB?.at[0]).to.be.below(MB?.at.at(-1) ?? 0);
    expect(MB?.values[0]).to.be.within(10, 10_000);
    expect(handles?.values[0]).to.be.above(2);
    // No process has this number.
    expect(() => residentMb(2 ** 30)).to.throw();
  });

  it('tell of what could not be read', async () => {
    const sampler = new Sampler(5, () => {
      throw new Error('gone');
    });
    const told = await sampler.stop().then(
      () => 'nothing',
      (error: Error) => error.message,
    );
    expect(told).to.equal('gone');
  });
});
