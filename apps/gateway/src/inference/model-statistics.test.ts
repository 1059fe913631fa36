import type { Reply } from '@millrace/shared';
import { expect } from 'chai';
import { textModel } from '../test-support/models.js';
import { StatisticsBook } from './model-statistics.js';
import type { InferRequest, InferResult } from './request.js';

const request = { model: textModel('m'), partial: false, stamps: { received: 1000 } } as InferRequest;

function answered(book: StatisticsBook, batches: string[]): void {
  const result = { items: [{ status: 'ok' }], stamps: {} } as unknown as InferResult;
  book.answered(request, result, [{ header: { batches } } as Reply], 1010);
}

describe('the statistics of a model', () => {
  it('count a run that answers several requests once', () => {
    const book = new StatisticsBook();
    for (const batches of [['a'], ['a', 'b'], ['b'], ['c']]) answered(book, batches);
    expect(book.read('m', '1')).to.deep.include({ items: 4, runs: 3, success: { count: 4, ms: 40 } });
  });

  it('remember a bounded number of runs', () => {
    const book = new StatisticsBook();
    for (let i = 0; i < 5000; i++) answered(book, [`run ${i}`]);
    answered(book, ['run 4999']);
    expect(book.read('m', '1')?.runs).to.equal(5000);
    answered(book, ['run 0']);
    expect(book.read('m', '1')?.runs).to.equal(5001);
  });
});
