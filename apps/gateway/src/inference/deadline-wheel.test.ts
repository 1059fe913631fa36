import { expect } from 'chai';
import { until } from '../test-support/redis.js';
import { DeadlineWheel } from './deadline-wheel.js';

describe('DeadlineWheel', () => {
  it('expires entries in order of their deadlines, never early', async () => {
    const expired: { name: string; early: boolean }[] = [];
    const now = performance.now();
    const deadlines: Record<string, number> = { late: now + 120, soon: now + 30, past: now - 5 };
    const wheel = new DeadlineWheel<string>((name) => {
      expired.push({ name, early: performance.now() < (deadlines[name] ?? 0) });
    });
    for (const [name, at] of Object.entries(deadlines)) wheel.add(name, at);
    await until('all are expired', () => expired.length === 3);
    expect(expired.map((e) => e.name)).to.deep.equal(['past', 'soon', 'late']);
    expect(expired.some((e) => e.early)).to.equal(false);
    wheel.stop();
  });

  it('forgets what is removed, and starts again after it was empty', async () => {
    const expired: string[] = [];
    const wheel = new DeadlineWheel<string>((name) => expired.push(name));
    const at = performance.now() + 40;
    wheel.add('removed', at);
    wheel.add('kept', at);
    wheel.remove('removed', at);
    await until('the kept one is expired', () => expired.length === 1);
    wheel.add('again', performance.now());
    await until('the new one is expired', () => expired.length === 2);
    expect(expired).to.deep.equal(['kept', 'again']);
    wheel.stop();
  });
});
