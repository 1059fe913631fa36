import { expect } from 'chai';
import { type Line, splitLines } from './split-lines.js';

async function* chunksOf(text: string | Buffer, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function linesOf(text: string | Buffer, size: number, maxBytes = 100): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const line of splitLines(chunksOf(text, size), maxBytes)) lines.push(line);
  return lines;
}

function texts(lines: readonly Line[]): (string | undefined)[] {
  return lines.map(({ bytes }) => bytes?.toString());
}

describe('splitLines', () => {
  it('cuts at LF and CRLF the same, wherever the pieces of the stream end', async () => {
    for (const size of [1, 2, 3, 7, 100]) {
      expect(texts(await linesOf('one\r\ntwo\n\nfour', size))).to.deep.equal(['one', 'two', '', 'four']);
    }
  });

  it('numbers the lines and says where the next one begins', async () => {
    const lines = await linesOf('ä\nbb\r\nc', 2);
    expect(lines.map(({ number, end }) => [number, end])).to.deep.equal([
      [1, 3],
      [2, 7],
      [3, 8],
    ]);
  });

  it('finds no line behind the last line end, and none in nothing', async () => {
    expect(await linesOf('one\n', 10)).to.have.length(1);
    expect(await linesOf('', 10)).to.have.length(0);
  });

  it('tells of a line that is too long and goes on behind it', async () => {
    for (const size of [1, 5, 1000]) {
      const lines = await linesOf(`a\n${'x'.repeat(11)}\nb\n${'y'.repeat(500)}`, size, 10);
      expect(texts(lines)).to.deep.equal(['a', undefined, 'b', undefined]);
    }
  });

  it('takes a line of just the longest length, with either end', async () => {
    const lines = await linesOf(`${'x'.repeat(10)}\r\n${'y'.repeat(10)}\n`, 3, 10);
    expect(texts(lines)).to.deep.equal(['x'.repeat(10), 'y'.repeat(10)]);
  });

  it('skips a byte order mark at the start alone', async () => {
    const lines = await linesOf('\ufeffone\n\ufefftwo', 2);
    expect(texts(lines)).to.deep.equal(['one', '\ufefftwo']);
  });

  it('goes on from a place in the middle of a file', async () => {
    const lines: Line[] = [];
    for await (const line of splitLines(chunksOf('c\nd\n', 3), 100, { number: 2, end: 40 })) lines.push(line);
    expect(lines.map(({ number, end }) => [number, end])).to.deep.equal([
      [3, 42],
      [4, 44],
    ]);
  });
});
