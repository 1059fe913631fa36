import { expect } from 'chai';
import { LoopWatch } from './loop-watch.js';

describe('the watch over the event loop', () => {
  const seen: number[] = [];
  const watch = new LoopWatch((ms) => seen.push(ms));
  after(() => watch.stop());

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  /** Holds the loop up. */
  async function block(ms: number): Promise<void> {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    // Lets the delay be sampled before the next hold-up.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  it('calls a loop lagging that is held up for long again and again, and no other', async () => {
    watch.start();
    await until(() => seen.length >= 1);
    expect(watch.lagging).to.equal(false);
    await block(1500);
    await until(() => seen.length >= 3);
    expect(Math.max(...seen)).to.be.above(1000);
    expect(watch.lagging, 'after one hold-up').to.equal(false);
    for (let i = 0; i < 10 && !watch.lagging; i++) await block(1500);
    expect(watch.lagging).to.equal(true);
    await until(() => !watch.lagging);
  });
});
