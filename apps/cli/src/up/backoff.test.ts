import { expect } from 'chai';
import { Backoff } from './backoff.js';

describe('Backoff', () => {
  it('doubles up to half a minute', () => {
    const backoff = new Backoff();
    const delays = Array.from({ length: 8 }, () => backoff.delayMs(10));
    expect(delays).to.deep.equal([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('begins anew for what ran well before it died', () => {
    const backoff = new Backoff();
    backoff.delayMs(10);
    backoff.delayMs(10);
    expect(backoff.delayMs(60_000)).to.equal(500);
  });
});
