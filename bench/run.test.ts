import { expect } from 'chai';
import { svgOf } from './run/graph.js';
import { passes, resultLine, resultTable } from './run/print.js';
import type { Measured, Outcome } from './run/scenario.js';
import { highestRate } from './run/search.js';
import { median, pairedRatio, spread, verdictOf } from './run/statistics.js';
import { Tally } from './run/tally.js';

describe("the bench's verdict", () => {
  it('takes medians, and ratios round by round', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 2, 3])).to.equal(2.5);
    expect(median([])).to.be.NaN;
    expect(spread([5, 1, 9])).to.deep.equal({ median: 5, least: 1, most: 9 });
    // A machine at half its speed in the second round changes nothing.
    expect(pairedRatio([8, 4, 9], [10, 5, 10])).to.equal(0.8);
  });

  it('is the ratio itself for one part, and for several the worst against its bar', () => {
    expect(verdictOf([{ name: 'a', ratio: 0.72, bar: 0.7 }])).to.deep.equal({
      ratio: 0.72,
      bar: 0.7,
      pass: true,
    });
    const two = [
      { name: 'a', ratio: 3, bar: 2 },
      { name: 'b', ratio: 0.99, bar: 1.1 },
    ];
    expect(verdictOf(two)).to.deep.equal({ ratio: 0.99 / 1.1, bar: 1, pass: false });
  });

  it('is no pass without parts or numbers', () => {
    expect(verdictOf([]).pass).to.equal(false);
    expect(verdictOf([{ name: 'a', ratio: Number.NaN, bar: 1 }]).pass).to.equal(false);
  });
});

const LOAD: Measured = {
  answered: 100,
  requestsPerSecond: 10,
  itemsPerSecond: 10,
  latencyMs: { mean: 2, p50: 2, p90: 3, p99: 4, p999: 5, max: 6 },
  failures: {},
  pastDeadline: 0,
  refusedMs: { mean: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 },
  checked: 7,
  wrong: 0,
  cpuMs: 5,
  cpuShare: 0.2,
  lateShare: 0.05,
  cpu: { gateway: 50 },
  othersShare: 0,
};
const PART = { name: 'a', ratio: 2, bar: 1 };

describe("the bench's tally", () => {
  const outcomeOf = (load: Measured, tolerated?: RegExp): Outcome => {
    const tally = new Tally();
    tally.add('one', load, tolerated);
    return tally.outcome([PART]);
  };

  it('holds the figures of a side over the rounds, and CPU a request', () => {
    const tally = new Tally();
    tally.add('one', LOAD);
    tally.add('one', { ...LOAD, itemsPerSecond: 30 });
    expect(tally.values('one', 'itemsPerSecond')).to.deep.equal([10, 30]);
    expect(tally.values('one', 'gatewayCpuMs')).to.deep.equal([0.5, 0.5]);
    expect(tally.outcome([PART]).facts).to.deep.include({ answersChecked: 14 });
  });

  it('says what is wrong with a load, and does not pass it', () => {
    const bad: Partial<Measured>[] = [{ failures: { 503: 2 } }, { wrong: 1 }, { answered: 0 }];
    for (const fault of bad) {
      const outcome = outcomeOf({ ...LOAD, ...fault });
      expect(outcome.faults).to.have.length(1);
      expect(passes(outcome)).to.equal(false);
    }
    expect(passes(outcomeOf({ ...LOAD, failures: { 429: 5 } }, /^429$/))).to.equal(true);
  });

  it('mentions a generator that takes much, or was the limit, and others on the machine', () => {
    const { notes } = outcomeOf({ ...LOAD, generatorLimit: 'late', othersShare: 0.5 });
    expect(notes.join('\n')).to.match(/took up to 20%/);
    expect(notes.join('\n')).to.match(/generator was the limit/);
    expect(notes.join('\n')).to.match(/late for up to 5%/);
    expect(notes.join('\n')).to.match(/1 of 1 measurements were disturbed/);
  });

  it('ends in a table and one line of JSON', () => {
    const outcome = outcomeOf(LOAD);
    const options = { seconds: 3, rounds: 3, peersDir: '', withPeers: false, cacheDir: '', outDir: '' };
    expect(JSON.parse(resultLine('name', options, outcome))).to.deep.include({
      scenario: 'name',
      ratio: 2,
      bar: 1,
      pass: true,
      generatorCpuShare: 0.2,
      faults: [],
    });
    expect(resultTable(outcome))
      .to.match(/^side {2}items per second/)
      .and.match(/a: 2 \(to reach: 1\) reached/);
  });
});

describe("the bench's search", () => {
  it('comes as near to the highest rate that holds as its steps allow', async () => {
    const tried: number[] = [];
    const found = await highestRate(300, 1100, 5, async (rate) => {
      tried.push(rate);
      return rate <= 640;
    });
    expect(tried).to.deep.equal([700, 500, 600, 650, 625]);
    expect(found).to.equal(625);
    expect(await highestRate(300, 1100, 5, async () => false)).to.equal(300);
  });
});

describe("the bench's graph", () => {
  it('draws each series and cuts off what is too high', () => {
    const svg = svgOf({
      title: 'a < b',
      xLabel: 'x',
      yLabel: 'y',
      yMost: 100,
      limit: { y: 50, name: 'limit' },
      series: { one: [{ x: 10, y: 10 }], two: [{ x: 20, y: 1e9 }] },
    });
    expect(svg).to.include('a &lt; b').and.include('>one<').and.include('>two<').and.include('>limit<');
    expect([...svg.matchAll(/<circle [^>]*cy="([\d.]+)"/g)].map(([, y]) => Number(y))).to.deep.equal([
      353.6, 44,
    ]);
  });
});
