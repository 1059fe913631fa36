import { expect } from 'chai';
import { stepOf } from './follow.js';
import { Rate } from './rate.js';
import type { Batch } from './server.js';
import { bytesText, rateText, timeText } from './texts.js';

function batchIn(status: string, [total, completed, failed]: [number, number, number]): Batch {
  return {
    id: 'batch_1',
    status,
    completion_window: '24h',
    errors: null,
    input_file_id: 'file-1',
    output_file_id: null,
    error_file_id: null,
    request_counts: { total, completed, failed },
  };
}

describe('the progress of a batch', () => {
  it('tells lines, failures, rate and the time that is left', () => {
    expect(stepOf(batchIn('in_progress', [200_000, 49_000, 1000]), 1234.5)).to.deep.equal({
      label: 'running',
      fraction: 0.25,
      detail: '50,000/200,000, 1,000 failed, 1,235/s, 2 min left',
    });
  });

  it('tells no rate that is not known, and nothing of lines that are not counted', () => {
    expect(stepOf(batchIn('in_progress', [8, 2, 0]), undefined).detail).to.equal('2/8');
    expect(stepOf(batchIn('validating', [0, 0, 0]), undefined)).to.deep.equal({
      label: 'waiting',
      fraction: 0,
    });
  });

  it('tells what holds it up', () => {
    const heldUp = { data: [{ code: 'storage_full', message: 'The storage of files is full.' }] };
    const step = stepOf({ ...batchIn('in_progress', [8, 2, 0]), errors: heldUp }, 5);
    expect(step).to.deep.equal({ label: 'held up', fraction: 0.25, detail: 'The storage of files is full.' });
  });

  it('fits beside a bar into 80 columns', () => {
    const { detail = '' } = stepOf(batchIn('in_progress', [1_000_000, 123_456, 12]), 857);
    expect(detail).to.have.length.of.at.most(48);
  });
});

describe('Rate', () => {
  it('is that of the last quarter of a minute', () => {
    const rate = new Rate();
    for (let second = 0; second <= 60; second++)
      rate.add(second * 1000, second < 30 ? 0 : (second - 30) * 100);
    expect(rate.perSecond).to.equal(100);
  });

  it('is not known of one count, nor while nothing grows', () => {
    const rate = new Rate();
    expect(rate.perSecond).to.equal(undefined);
    rate.add(0, 5);
    expect(rate.perSecond).to.equal(undefined);
    rate.add(1000, 5);
    expect(rate.perSecond).to.equal(undefined);
  });

  it('begins anew where the count goes back', () => {
    const rate = new Rate();
    rate.add(0, 0);
    rate.add(1000, 1000);
    rate.add(2000, 500);
    rate.add(4000, 700);
    expect(rate.perSecond).to.equal(100);
  });
});

describe('numbers of a batch', () => {
  it('are as short as they can be read', () => {
    expect([17, 999, 1000, 1_250_000, 123_456_789, 999_960].map(bytesText)).to.deep.equal([
      '17 bytes',
      '999 bytes',
      '1.0 KB',
      '1.3 MB',
      '123 MB',
      '1.0 MB',
    ]);
    expect([0.4, 99.2, 101, 6000].map(timeText)).to.deep.equal(['1 s', '100 s', '2 min', '1.7 h']);
    expect([0.1234, 9.87, 12.3, 4567].map(rateText)).to.deep.equal(['0.12/s', '9.9/s', '12/s', '4,567/s']);
  });
});
