import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { Throughput } from './throughput.js';

describe('throughput', () => {
  it('follows what is answered, and falls when nothing is', async () => {
    const throughput = new Throughput();
    throughput.add(600);
    expect(throughput.perSecond(), 'too soon to tell').to.equal(0);
    await setTimeout(600);
    const busy = throughput.perSecond();
    // Half of a reading of 1000 a second; a timer may be a little early, and on a busy machine late.
    expect(busy).to.be.within(1, 501);
    await setTimeout(600);
    expect(throughput.perSecond()).to.be.below(busy);
  });
});
