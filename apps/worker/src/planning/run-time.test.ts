import { expect } from 'chai';
import { RunTime } from './run-time.js';

describe('the predicted run time', () => {
  it('follows what runs take, and is not thrown by one slow run', () => {
    const runTime = new RunTime(0.05);
    expect(runTime.predictMs(100)).to.be.closeTo(5, 1e-9);
    for (let i = 0; i < 200; i++) runTime.observe(100, 10);
    expect(runTime.predictMs(100)).to.be.closeTo(10, 0.01);
    runTime.observe(100, 100);
    expect(runTime.predictMs(100)).to.be.below(20);
  });

  it('learns nothing from a run of nothing', () => {
    const runTime = new RunTime(0.05);
    runTime.observe(0, 100);
    expect(runTime.predictMs(100)).to.be.closeTo(5, 1e-9);
  });
});
