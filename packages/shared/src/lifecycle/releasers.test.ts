import { expect } from 'chai';
import { Releasers } from './releasers.js';

describe('releasers', () => {
  it('run last acquired first, once, past a failing one, and keep the first error', async () => {
    const order: string[] = [];
    const releasers = new Releasers();
    releasers.push(() => void order.push('first acquired'));
    releasers.push(() => {
      order.push('second fails');
      throw new Error('second');
    });
    releasers.push(async () => {
      order.push('third fails');
      throw new Error('third');
    });
    const outcome = await releasers.release().catch((error: Error) => error.message);
    await releasers.release().catch(() => undefined);
    expect(outcome).to.equal('third');
    expect(order).to.deep.equal(['third fails', 'second fails', 'first acquired']);
  });
});
