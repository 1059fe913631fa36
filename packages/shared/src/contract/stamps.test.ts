import { expect } from 'chai';
import { SPANS, STAGES, spans } from './stamps.js';

describe('stage stamps', () => {
  it('give the time between neighbours, and never less than nothing', () => {
    expect(spans({ received: 10, enqueued: 12.5, fetched: 12.4 })).to.deep.equal([
      { name: 'admit', ms: 2.5 },
      { name: 'queue', ms: 0 },
    ]);
  });

  it('cover the whole way without a gap', () => {
    expect(SPANS.map((span) => span.from)).to.deep.equal(STAGES.slice(0, -1));
    expect(SPANS.map((span) => span.to)).to.deep.equal(STAGES.slice(1));
  });
});
