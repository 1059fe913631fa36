import { expect } from 'chai';
import { type BatchRecord, inState } from './batch-record.js';

describe('the states of a batch', () => {
  it('are in progress since the batch began, however often it was paused, and paused since the last time', () => {
    const states = ['in_progress', 'paused', 'in_progress', 'paused', 'in_progress'] as const;
    const made = { state: 'validating', since: { validating: 1 } } as unknown as BatchRecord;
    const { state, since } = states.reduce((record, next, i) => inState(record, next, 10 * (i + 1)), made);
    expect(state).to.equal('in_progress');
    expect(since).to.deep.equal({ validating: 1, in_progress: 10, paused: 40 });
  });
});
