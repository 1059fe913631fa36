import { expect } from 'chai';
import { listPage } from './list-page.js';
import { legend } from './timing.js';

describe('the pages of requests', () => {
  it('name the colours of the bars that are there, and none where there is no bar', () => {
    const segments = [
      { name: 'queue', ms: 1 },
      { name: 'worker', ms: 2 },
    ];
    const named = [...legend([undefined, { segments, totalMs: 3 }]).text.matchAll(/<\/svg>(\w+)/g)];
    expect(named.map(([, name]) => name)).to.deep.equal(['queue', 'worker']);
    expect(legend([undefined]).text).to.equal('');
  });

  it('say that there is none in a state only where all were looked at', () => {
    expect(listPage({ rows: [] }, 'failed')).to.include('No kept request is failed');
    expect(listPage({ rows: [], next: 500 }, 'failed'))
      .to.include('There may be older ones')
      .and.not.include('No kept request');
  });
});
