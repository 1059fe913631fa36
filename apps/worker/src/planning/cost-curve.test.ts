import { expect } from 'chai';
import { CostCurve, type CurvePoint } from './cost-curve.js';
import { nonNegativeLeastSquares } from './nnls.js';

const TERMS = { fixed: 0.45, perItem: 0.05, perUnit: 0.066, perSquare: 0.00018 };

function points(noise: (i: number) => number): CurvePoint[] {
  const truth = new CostCurve(TERMS);
  const grid = [1, 2, 4, 8, 16, 32].flatMap((batch) => [4, 16, 32, 64, 128].map((size) => ({ batch, size })));
  return grid.map(({ batch, size }, i) => ({ batch, size, ms: truth.restMs(batch, size) * noise(i) }));
}

describe('non-negative least squares', () => {
  it('finds the exact solution where it is non-negative', () => {
    const x = nonNegativeLeastSquares(
      [
        [1, 2],
        [3, 4],
        [5, 7],
      ],
      [5, 11, 19],
    );
    expect(x[0]).to.be.closeTo(1, 1e-9);
    expect(x[1]).to.be.closeTo(2, 1e-9);
  });

  it('holds at zero what would be negative', () => {
    const x = nonNegativeLeastSquares(
      [
        [1, 1],
        [1, 2],
        [1, 3],
      ],
      [3, 2, 1],
    );
    expect(x[1]).to.equal(0);
    expect(x[0]).to.be.closeTo(2, 1e-9);
  });
});

describe('the cost curve', () => {
  it('gives back the terms that made its points', () => {
    const curve = CostCurve.fit(points(() => 1));
    for (const [name, value] of Object.entries(TERMS)) {
      expect(curve.terms[name as keyof typeof TERMS], name).to.be.closeTo(value, value * 0.01);
    }
    expect(curve.errors(points(() => 1)).largest).to.be.below(0.01);
  });

  it('is off by no more than its points are', () => {
    const noisy = points((i) => 1 + 0.05 * Math.sin(i * 12.9898));
    const { mean, largest } = CostCurve.fit(noisy).errors(noisy);
    expect(mean).to.be.below(0.05);
    expect(largest).to.be.below(0.12);
  });

  it('follows slowly what serving observes', () => {
    const curve = new CostCurve(TERMS);
    curve.observe(8, 16, curve.restMs(8, 16) * 100);
    expect(curve.correction).to.be.below(1.1);
    for (let i = 0; i < 500; i++) curve.observe(8, 16, curve.restMs(8, 16) * 1.6);
    expect(curve.correction).to.be.closeTo(1.6, 0.01);
    expect(curve.predictMs(8, 16)).to.be.closeTo(curve.restMs(8, 16) * 1.6, 0.1);
    expect(curve.fixedMs).to.be.closeTo(0.45 * 1.6, 0.01);
  });

  it('tells what an item takes lately from its runs, and before the first from itself', () => {
    const curve = new CostCurve({ fixed: 1, perItem: 0, perUnit: 0.5, perSquare: 0 });
    expect(curve.msPerItem(4)).to.equal(3);
    for (let i = 0; i < 500; i++) curve.observe(8, 4, 4);
    expect(curve.msPerItem(4)).to.be.closeTo(0.5, 1e-9);
  });
});
