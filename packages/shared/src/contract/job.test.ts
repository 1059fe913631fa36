import { expect } from 'chai';
import { parseJobData } from './job.js';

const part = {
  requestId: 'r',
  firstItem: 0,
  count: 1,
  replyTo: 'g',
  deadlineAt: 1e12,
  onDisconnect: 'cancel',
  tenant: 'anonymous',
  priority: 10,
  generation: 0,
  parameters: {},
  stamps: { received: 1, enqueued: 2 },
  payload: { inline: '' },
};
const job = { v: 1, model: 'm', version: '1', parts: [part] };

describe('job data', () => {
  it('is read as it was written', () => {
    expect(parseJobData(structuredClone(job))).to.deep.equal(job);
  });

  it('of another contract version is refused by name before anything else is looked at', () => {
    for (const v of [2, 0, undefined, '1']) {
      expect(() => parseJobData({ v }))
        .to.throw()
        .with.property('code', 'contract_version_unsupported');
    }
    expect(() => parseJobData(null))
      .to.throw()
      .with.property('code', 'contract_version_unsupported');
  });

  it('with a fault is refused with the name of the field', () => {
    const faults: [string, object][] = [
      ['parts', { ...job, parts: [] }],
      ['parts.0.count', { ...job, parts: [{ ...part, count: 0 }] }],
      ['parts.0.deadlineAt', { ...job, parts: [{ ...part, deadlineAt: 'soon' }] }],
      ['parts.0.onDisconnect', { ...job, parts: [{ ...part, onDisconnect: 'shrug' }] }],
      ['parts.0.payload', { ...job, parts: [{ ...part, payload: {} }] }],
      ['model', { ...job, model: 7 }],
    ];
    for (const [field, data] of faults) {
      expect(() => parseJobData(data), field)
        .to.throw()
        .with.nested.property('details.field', field);
    }
  });
});
