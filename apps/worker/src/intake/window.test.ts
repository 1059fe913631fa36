import type { BatchingOptions } from '@millrace/shared';
import { expect } from 'chai';
import { windowState } from './window.js';

const batching: BatchingOptions = {
  windowMs: 10,
  maxItems: 4,
  maxCost: 100,
  maxPadding: 0.2,
  closeEarly: 'never',
};
const view = { items: 1, cost: 10, oldestEnqueuedAt: 1000, now: 1002, draining: false };

describe('the batch window', () => {
  it('stays open to its end, counted from the oldest item', () => {
    expect(windowState(view, batching)).to.equal(1010);
    expect(windowState({ ...view, now: 1010 }, batching)).to.equal('time');
  });

  it('is closed at once for an item that waited long enough elsewhere', () => {
    expect(windowState({ ...view, now: 5000 }, batching)).to.equal('time');
  });

  it('closes by size and by cost', () => {
    expect(windowState({ ...view, items: 4 }, batching)).to.equal('size');
    expect(windowState({ ...view, cost: 100 }, batching)).to.equal('cost');
  });

  it('closes early for an idle session when it may', () => {
    expect(windowState(view, { ...batching, closeEarly: 'auto' })).to.equal('idle');
  });

  it('closes when the worker drains', () => {
    expect(windowState({ ...view, draining: true }, batching)).to.equal('drain');
  });
});
