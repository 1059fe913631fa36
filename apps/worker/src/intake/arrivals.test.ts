import { expect } from 'chai';
import { Arrivals } from './arrivals.js';

describe('the gap between arrivals', () => {
  it('is that of a steady stream, whatever it comes in', () => {
    for (const count of [1, 4]) {
      const arrivals = new Arrivals();
      for (let i = 0; i < 200; i++) arrivals.observe(count, i * 2 * count);
      expect(arrivals.gapMs(199 * 2 * count)).to.be.closeTo(2, 0.1);
    }
  });

  it('is long before anything has come, and grows while nothing comes', () => {
    const arrivals = new Arrivals();
    expect(arrivals.gapMs(0)).to.be.above(100);
    for (let i = 0; i < 200; i++) arrivals.observe(1, i);
    expect(arrivals.gapMs(199 + 50)).to.equal(50);
  });
});
