import type { BatchingOptions } from '@millrace/shared';
import { expect } from 'chai';
import { windowState } from './window.js';

const batching: BatchingOptions = {
  windowMs: 10,
  maxItems: 4,
  maxCost: 100,
  planner: 'cost',
  sortedItems: 8,
  closeEarly: 'never',
  prefetch: true,
};
const view = {
  items: 1,
  cost: 10,
  oldestEnqueuedAt: 1000,
  now: 1002,
  arrivalGapMs: 1.5,
  fixedMs: 0.4,
  sessionBusyMs: 0,
  draining: false,
};

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

  it('closes early for an idle session when waiting gains nothing, as on a CPU', () => {
    expect(windowState(view, { ...batching, closeEarly: 'auto' })).to.equal('idle');
  });

  it('waits for mates where starting a run is dear and they come fast, as on a GPU', () => {
    const gpu = { ...view, fixedMs: 8 };
    expect(windowState(gpu, { ...batching, closeEarly: 'auto' })).to.equal(1010);
    expect(windowState({ ...gpu, now: 1010 }, { ...batching, closeEarly: 'auto' })).to.equal('time');
  });

  it('closes early even there for a lone client, after whom nobody comes', () => {
    expect(
      windowState({ ...view, fixedMs: 8, arrivalGapMs: 20 }, { ...batching, closeEarly: 'auto' }),
    ).to.equal('idle');
  });

  it('stays open behind a long run on a GPU until that is about to end, however long the oldest has waited', () => {
    const behind = { ...view, fixedMs: 8, now: 5000, sessionBusyMs: 40 };
    expect(windowState(behind, batching)).to.equal(5030);
    expect(windowState({ ...behind, sessionBusyMs: 10 }, batching)).to.equal('time');
    expect(windowState({ ...behind, items: 4 }, batching)).to.equal('size');
    expect(windowState({ ...behind, draining: true }, batching)).to.equal('drain');
  });

  it('does not wait behind a run where nothing is gained by it', () => {
    expect(windowState({ ...view, now: 5000, sessionBusyMs: 40 }, batching)).to.equal('time');
    expect(
      windowState({ ...view, fixedMs: 8, arrivalGapMs: 20, now: 5000, sessionBusyMs: 40 }, batching),
    ).to.equal('time');
  });

  it('closes when the worker drains', () => {
    expect(windowState({ ...view, draining: true }, batching)).to.equal('drain');
  });
});
