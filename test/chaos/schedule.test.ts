import { expect } from 'chai';
import { seeded } from '../support/random.js';
import { FAULTS } from './faults.js';
import { schedule } from './schedule.js';

describe('a schedule of faults', () => {
  const names = (seed: number, ms: number) =>
    schedule(FAULTS, seeded(seed), ms).map(({ fault }) => fault.name);

  it('is the same for the same seed, and another for another', () => {
    expect(names(1, 300_000)).to.deep.equal(names(1, 300_000));
    expect(names(1, 300_000)).not.to.deep.equal(names(2, 300_000));
  });

  it('has every fault in its first round, and goes on for as long as it should', () => {
    expect(names(1, 1000).slice(0, FAULTS.length)).to.have.members(FAULTS.map(({ name }) => name));
    const long = schedule(FAULTS, seeded(1), 600_000);
    expect(long.at(-1)?.at).to.be.within(590_000, 600_000);
    expect(long.map(({ at }) => at)).to.deep.equal(long.map(({ at }) => at).sort((a, b) => a - b));
  });
});
