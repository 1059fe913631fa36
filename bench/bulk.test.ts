import { expect } from 'chai';
import { MINILM } from '#test/support/minilm.js';
import { bulkFile, checkOutput } from './serve/bulk-lines.js';

const SENTENCES = ['one "quoted"', 'two'];
const VECTORS = new Map([[SENTENCES[1] ?? '', [0.5, -0.25]]]);

const answer = (index: number, embedding: number[]): string =>
  `{"id":"x","custom_id":"${index}","line":${index + 1},"response":{"status_code":200,"body":${JSON.stringify(
    {
      data: [{ embedding }],
    },
  )}},"error":null}\n`;

describe("the bench's bulk work", () => {
  it('is a sentence a line, in turn', () => {
    const lines = new TextDecoder().decode(bulkFile(SENTENCES, 3)).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).to.deep.equal([
      { custom_id: '0', body: { model: MINILM, input: SENTENCES[0] } },
      { custom_id: '1', body: { model: MINILM, input: SENTENCES[1] } },
      { custom_id: '2', body: { model: MINILM, input: SENTENCES[0] } },
    ]);
  });

  it('is compared with the right vectors, as far as they are known, and by its order', async () => {
    const check = (...lines: string[]) => checkOutput(new Response(lines.join('')), SENTENCES, VECTORS);
    const right = [answer(0, [1, 1]), answer(1, [0.5, -0.25])];
    expect(await check(...right)).to.deep.equal({
      lines: 2,
      bytes: right.join('').length,
      compared: 1,
      wrong: 0,
    });
    expect(await check(answer(0, [1, 1]), answer(1, [0.5, -0.3]))).to.include({ compared: 1, wrong: 1 });
    expect(await check(answer(0, [1, 1]), answer(1, [0.5]))).to.include({ compared: 1, wrong: 1 });
    expect(await check(answer(1, [0.5, -0.25]), answer(0, [1, 1]))).to.include({ lines: 2, wrong: 2 });
  });
});
