import { PRIORITIES } from '@millrace/shared';
import { expect } from 'chai';
import { takeScheduling } from './scheduling.js';

describe('priority and timeout among the parameters', () => {
  it('map the priorities in order onto the classes, 0 onto what the headers say', () => {
    const classOf = (priority: number) => takeScheduling({ priority }).priority;
    expect([0, 1, 2, 3, 4, 2 ** 40].map(classOf)).to.deep.equal([
      undefined,
      'interactive',
      'normal',
      'bulk',
      'bulk',
      'bulk',
    ]);
    expect(PRIORITIES.interactive).to.be.below(PRIORITIES.normal);
    expect(PRIORITIES.normal).to.be.below(PRIORITIES.bulk);
  });

  it('read a timeout as microseconds, 0 as none', () => {
    expect(takeScheduling({ timeout: 1500 })).to.include({ waitMs: 1.5 });
    expect(takeScheduling({ timeout: 0 })).not.to.have.property('waitMs');
    expect(takeScheduling({})).not.to.have.property('waitMs');
  });

  it('keep the others for the model, and themselves from it', () => {
    expect(takeScheduling({ priority: 2, timeout: 5, other: 'x' }).parameters).to.deep.equal({ other: 'x' });
  });

  it('refuse what is no whole number', () => {
    for (const value of [-1, 1.5, '3', true]) {
      expect(() => takeScheduling({ priority: value })).to.throw(
        'parameters.priority must be a whole number',
      );
      expect(() => takeScheduling({ timeout: value })).to.throw('parameters.timeout must be a whole number');
    }
  });
});
