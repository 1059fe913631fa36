import { expect } from 'chai';
import { SegmentBuffer } from './segments.js';

const PIECE_BYTES = 256 * 1024;

describe('the lines of a file that are to be written', () => {
  const linesOf = (first: number, count: number, bytes: number): Buffer[] =>
    Array.from({ length: count }, (_, i) => Buffer.from(`${String(first + i).padEnd(bytes - 1, '.')}\n`));
  const textOf = (pieces: readonly Buffer[]): string => Buffer.concat(pieces).toString();

  it('change none of those that are being written', () => {
    const buffer = new SegmentBuffer('file-1', 0, 1);
    for (let segment = 0; segment < 20; segment++) {
      const lines = linesOf(100 * segment, 100, 10_000);
      for (const line of lines) buffer.add([line]);
      const taken = buffer.take();
      // What comes while a segment is being written goes elsewhere.
      buffer.add(['a line of the next']);
      expect(textOf(taken?.pieces ?? [])).to.equal(textOf(lines));
      expect(taken?.segment).to.deep.equal({
        key: `files/file-1/${String(2 * segment).padStart(6, '0')}-1`,
        bytes: 1_000_000,
      });
      expect(textOf(buffer.take()?.pieces ?? [])).to.equal('a line of the next');
    }
  });

  it('have a piece of their own where they are larger than one', () => {
    const buffer = new SegmentBuffer('file-1', 0, 1);
    const large = 'é'.repeat(PIECE_BYTES);
    buffer.add(['a', large, 'b']);
    const taken = buffer.take();
    expect(textOf(taken?.pieces ?? [])).to.equal(`a${large}b`);
    buffer.add(['c']);
    expect(textOf(buffer.take()?.pieces ?? [])).to.equal('c');
  });
});
