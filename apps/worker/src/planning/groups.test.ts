import { expect } from 'chai';
import { paddingShare, planGroups } from './groups.js';

const LIMITS = { maxItems: 8, maxCost: 256, maxPadding: 0.2 };

function item(size: number, enqueuedAt = 0, shapeKey = '', alone = false) {
  return { size, enqueuedAt, shapeKey, alone };
}

/** Deterministic sizes between 1 and 120. */
const sizes = Array.from({ length: 200 }, (_, i) => 1 + ((i * 7919) % 120));

describe('the grouping of a batch', () => {
  it('puts every item into exactly one group', () => {
    const items = sizes.map((size, i) => item(size, i, i % 3 === 0 ? 'a' : 'b', i % 50 === 0));
    const grouped = planGroups(items, LIMITS).flat();
    expect(grouped).to.have.length(items.length);
    expect(items.every((one) => grouped.includes(one))).to.equal(true);
  });

  it('keeps every limit', () => {
    for (const group of planGroups(
      sizes.map((size) => item(size)),
      LIMITS,
    )) {
      const largest = Math.max(...group.map(({ size }) => size));
      expect(group.length).to.be.at.most(LIMITS.maxItems);
      expect(paddingShare(group)).to.be.at.most(LIMITS.maxPadding);
      if (group.length > 1) expect(largest * group.length).to.be.at.most(LIMITS.maxCost);
    }
  });

  it('runs an item larger than maxCost by itself', () => {
    const groups = planGroups([item(10), item(10_000), item(10)], LIMITS);
    expect(groups.map((group) => group.map(({ size }) => size))).to.deep.equal([[10, 10], [10_000]]);
  });

  it('never mixes shapes, and leaves marked items alone', () => {
    const groups = planGroups(
      [item(4, 0, 'a'), item(4, 0, 'b'), item(4, 0, 'a'), item(4, 0, 'a', true)],
      LIMITS,
    );
    expect(groups.map((group) => group.length).sort()).to.deep.equal([1, 1, 2]);
    for (const group of groups) expect(new Set(group.map(({ shapeKey }) => shapeKey)).size).to.equal(1);
    expect(groups.find((group) => group[0]?.alone)).to.have.length(1);
  });

  it('gives the group with the oldest item first', () => {
    const groups = planGroups([item(1, 5), item(100, 3), item(50, 9), item(1, 8)], LIMITS);
    const oldest = groups.map((group) => Math.min(...group.map(({ enqueuedAt }) => enqueuedAt)));
    expect(oldest).to.deep.equal([3, 5, 9]);
  });

  it('takes nothing and gives nothing', () => {
    expect(planGroups([], LIMITS)).to.deep.equal([]);
    expect(paddingShare([])).to.equal(0);
  });
});
