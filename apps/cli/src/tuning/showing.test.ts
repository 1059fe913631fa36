import { expect } from 'chai';
import { busyWarning } from './busy.js';
import { drawCurve } from './curve-drawing.js';
import { percent, tableLines } from './table.js';

describe('a table', () => {
  it('has words to the left, numbers to the right, and no trailing blanks', () => {
    const lines = tableLines([
      ['name', 'ms', ''],
      ['a', '1.50', '2.00x'],
      ['longer', '10', ''],
    ]);
    expect(lines).to.deep.equal([
      'name      ms',
      '------  ----  -----',
      'a       1.50  2.00x',
      'longer    10',
    ]);
    expect(percent(0.1234)).to.equal('12.3%');
  });
});

describe('the drawing of a cost curve', () => {
  const predictMs = (batch: number, size: number): number => 0.5 + batch * size * 0.05;
  const series = [8, 128].map((size) => ({
    size,
    points: [1, 4, 32].map((batch) => ({ batch, ms: predictMs(batch, size) })),
  }));
  const svg = drawCurve({ title: 'a < b & c', series, predictMs });

  it('has a dot a point, a line a size, and both in a key', () => {
    const lines = svg.match(/<polyline/g) ?? [];
    // One more dot a size in the key.
    expect(svg.match(/<circle/g)).to.have.length(6 + 2);
    expect(lines).to.have.length(2);
    expect(svg).to.include('>size 8<').and.to.include('>size 128<').and.to.include('a &lt; b &amp; c');
  });

  it('puts points where the line goes, inside the frame', () => {
    const points = (svg.match(/points="([^"]+)"/)?.[1] ?? '').split(' ');
    expect(points[0]).to.equal(`64.0,${svg.match(/<circle cx="64\.0" cy="([\d.]+)"/)?.[1]}`);
    for (const [, x = '', y = ''] of svg.matchAll(/([\d.]+),([\d.]+)/g)) {
      expect(Number(x)).to.be.within(64, 640);
      expect(Number(y)).to.be.within(48, 428);
    }
    expect(svg).not.to.match(/NaN|Infinity|undefined/);
  });

  it('can be made of a single point', () => {
    const one = drawCurve({ title: 'x', series: [{ size: 1, points: [{ batch: 1, ms: 0.02 }] }], predictMs });
    expect(one).not.to.match(/NaN|Infinity|undefined/);
  });
});

describe('a busy machine', () => {
  it('is spoken of, and one at rest is not', () => {
    expect(busyWarning(0.05)).to.equal(undefined);
    expect(busyWarning(0.5)).to.include('use 50% of this machine');
  });
});
