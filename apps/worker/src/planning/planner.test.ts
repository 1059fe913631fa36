import { expect } from 'chai';
import { CostCurve } from './cost-curve.js';
import { type GroupLimits, type Plannable, paddingShare, planGroups } from './planner.js';

const LIMITS: GroupLimits = { maxItems: 8, maxCost: 256, planner: 'cost', sortedItems: 4 };
const CURVE = new CostCurve({ fixed: 0.45, perItem: 0, perUnit: 0.066, perSquare: 0.00018 });

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function item(size: number, urgency = 0, shapeKey = '', alone = false): Plannable {
  return { size, urgency, shapeKey, alone };
}

function totalMs(groups: readonly Plannable[][]): number {
  return groups.reduce(
    (sum, group) => sum + CURVE.predictMs(group.length, Math.max(...group.map((i) => i.size))),
    0,
  );
}

/** Least total time over every way to split items into groups, neighbours or not. */
function bruteForce(items: readonly Plannable[], limits: GroupLimits): number {
  const [first, ...others] = items;
  if (!first) return 0;
  let least = Number.POSITIVE_INFINITY;
  for (let chosen = 0; chosen < 1 << others.length; chosen++) {
    const group = [first, ...others.filter((_, i) => chosen & (1 << i))];
    const size = Math.max(...group.map((i) => i.size));
    if (group.length > limits.maxItems || (group.length > 1 && group.length * size > limits.maxCost))
      continue;
    const rest = others.filter((_, i) => !(chosen & (1 << i)));
    least = Math.min(least, totalMs([group]) + bruteForce(rest, limits));
  }
  return least;
}

describe('the planner', () => {
  it('finds the groups of least predicted time among all possible ones', () => {
    const next = random(1);
    for (let round = 0; round < 60; round++) {
      const items = Array.from({ length: 1 + next(7) }, () => item(1 + next(120)));
      const limits = { ...LIMITS, maxItems: 1 + next(4), maxCost: 100 + next(300) };
      const planned = totalMs(planGroups(items, limits, CURVE));
      expect(planned).to.be.closeTo(bruteForce(items, limits), 1e-9);
    }
  });

  it('keeps runs with bulk items short while interactive ones come, and fills up those of others with them', () => {
    const next = random(7);
    for (const planner of ['cost', 'sorted', 'padding'] as const) {
      const limits = { ...LIMITS, planner, bulkRunMs: 10 };
      const items = Array.from({ length: 120 }, (_, i) => ({
        ...item(1 + next(120), (i % 3) * 1000 + i),
        bulk: i % 3 === 2,
      }));
      const groups = planGroups(items, limits, CURVE);
      expect(groups.flat()).to.have.members(items);
      const others = (group: typeof items) => group.filter(({ bulk }) => !bulk);
      for (const group of groups) {
        if (group.length > 1 && group.some(({ bulk }) => bulk)) expect(totalMs([group])).to.be.at.most(10);
        if (others(group).length > 0)
          expect(totalMs([group])).to.be.at.most(Math.max(5, totalMs([others(group)])));
        if (others(group).length > 0) expect(group[0]?.bulk).to.equal(false);
      }
      expect(
        groups.filter((group) => others(group).length > 0).some((group) => group.some(({ bulk }) => bulk)),
      ).to.equal(true);
      // What is more urgent is cut as if there were no bulk items, and all of it comes first.
      const first = groups.map(others).filter((group) => group.length > 0);
      expect(first).to.deep.equal(
        planGroups(
          items.filter(({ bulk }) => !bulk),
          limits,
          CURVE,
        ),
      );
      const firstBulk = groups.findIndex((group) => others(group).length === 0);
      expect(groups.slice(firstBulk).every((group) => others(group).length === 0)).to.equal(true);
    }
    const together = planGroups(
      [item(8), { ...item(8, 1), bulk: true }],
      { ...LIMITS, bulkRunMs: undefined },
      CURVE,
    );
    expect(together).to.have.length(1);
    // The largest that pad nothing, as many as half of the time allows.
    const bulk = [4, 8, 16, 20, 24].map((size) => ({ ...item(size, 1), bulk: true }));
    const [filled] = planGroups(
      [item(20), ...bulk],
      { ...LIMITS, bulkRunMs: 2 * CURVE.predictMs(3, 20) },
      CURVE,
    );
    expect(filled?.map(({ size }) => size)).to.deep.equal([20, 20, 16]);
  });

  it('puts every item into exactly one group and keeps the limits, whatever the strategy', () => {
    const next = random(2);
    for (const planner of ['cost', 'sorted', 'padding'] as const) {
      const limits = { ...LIMITS, planner };
      const items = Array.from({ length: 200 }, (_, i) =>
        item(1 + next(120), i, next(2) ? 'a' : 'b', next(40) === 0),
      );
      const groups = planGroups(items, limits, CURVE);
      expect(groups.flat()).to.have.length(items.length);
      expect(items.every((one) => groups.flat().includes(one))).to.equal(true);
      for (const group of groups) {
        const largest = Math.max(...group.map(({ size }) => size));
        expect(group.length).to.be.at.most(planner === 'sorted' ? limits.sortedItems : limits.maxItems);
        if (group.length > 1) expect(largest * group.length).to.be.at.most(limits.maxCost);
        expect(new Set(group.map(({ shapeKey }) => shapeKey)).size).to.equal(1);
        if (group.some(({ alone }) => alone)) expect(group).to.have.length(1);
      }
    }
  });

  it('runs an item larger than maxCost by itself', () => {
    const groups = planGroups([item(10), item(10_000), item(10)], LIMITS, CURVE);
    expect(groups.map((group) => group.map(({ size }) => size)).sort()).to.deep.equal([[10, 10], [10_000]]);
  });

  it('gives the group with the most urgent item first', () => {
    const groups = planGroups([item(1, 5), item(100, 3), item(50, 9), item(1, 8)], LIMITS, CURVE);
    expect(groups[0]?.some(({ urgency }) => urgency === 3)).to.equal(true);
  });

  it('lets no item starve under any order of arrivals', () => {
    for (const seed of [3, 4, 5, 6]) {
      const next = random(seed);
      let waiting: Plannable[] = [];
      const rounds = new Map<Plannable, number>();
      for (let now = 0; now < 400; now++) {
        // A flood of short items beside rare long ones: what a planner for efficiency alone would put off.
        for (let i = next(12); i > 0; i--) waiting.push(item(next(20) === 0 ? 110 : 1 + next(8), now));
        waiting = waiting.slice(-60 - next(10));
        const [group = []] = planGroups(waiting, LIMITS, CURVE);
        const oldest = Math.min(...waiting.map(({ urgency }) => urgency));
        if (group.length > 0) expect(Math.min(...group.map(({ urgency }) => urgency))).to.equal(oldest);
        waiting = waiting.filter((one) => !group.includes(one));
        for (const one of waiting) rounds.set(one, (rounds.get(one) ?? 0) + 1);
      }
      // Each round runs the oldest, so at most as many rounds as there were items before it.
      expect(Math.max(...rounds.values())).to.be.at.most(70);
    }
  });

  it('pads as they came when told to, and sorts when told to', () => {
    const mixed = [item(100, 1), item(2, 2), item(90, 3), item(3, 4)];
    const padded = planGroups(mixed, { ...LIMITS, maxCost: 4096, planner: 'padding' }, CURVE);
    expect(padded.map((group) => group.map(({ size }) => size))).to.deep.equal([[100, 2, 90, 3]]);
    const sorted = planGroups(mixed, { ...LIMITS, planner: 'sorted', sortedItems: 2 }, CURVE);
    expect(sorted.map((group) => group.map(({ size }) => size))).to.deep.equal([
      [90, 100],
      [2, 3],
    ]);
  });

  it('takes nothing and gives nothing', () => {
    expect(planGroups([], LIMITS, CURVE)).to.deep.equal([]);
    expect(paddingShare([])).to.equal(0);
  });
});
