import { expect } from 'chai';
import { findingsOf } from './batch-findings.js';
import type { BulkLine } from './bulk-lines.js';

const right = (name: string): BulkLine => ({
  text: name,
  customId: name,
  asked: [`value ${name}`],
  read: (body) => [`value ${(body as { is: string }).is}`],
});
const broken: BulkLine = { text: '{', customId: null, asked: ['error invalid_json'], read: () => [] };
const refused: BulkLine = { ...right('d'), asked: ['error model_not_found'] };
const LINES = [right('a'), broken, right('c'), refused];

const answered = (line: number, name: string, value = name): string =>
  `${JSON.stringify({ custom_id: name, line, response: { status_code: 200, body: { is: value } }, error: null })}\n`;
const NOT_JSON = `${JSON.stringify({ custom_id: null, line: 2, response: null, error: { code: 'invalid_json' } })}\n`;
const failed = (code: string): string =>
  `${JSON.stringify({ custom_id: 'd', line: 4, response: { status_code: 404, body: { error: { code } } }, error: null })}\n`;
const OUTPUT = answered(1, 'a') + answered(3, 'c');
const ERRORS = NOT_JSON + failed('model_not_found');

const NONE = { duplicated: 0, missing: 0, outOfOrder: 0, wrong: 0 };
const counts = (output: string, errors = ERRORS) => {
  const { told, ...found } = findingsOf(LINES, { output, errors });
  return { ...found, told: told.length };
};

describe('the files of a batch, compared with its lines', () => {
  it('are as they must be with each line once, in order, in its file and with its answer', () => {
    expect(counts(OUTPUT)).to.deep.equal({ ...NONE, told: 0 });
  });

  it('tell of a line that is in them twice, in one or in both', () => {
    expect(counts(OUTPUT + answered(3, 'c'))).to.include({ ...NONE, duplicated: 1 });
    expect(counts(OUTPUT, NOT_JSON + ERRORS)).to.include({ ...NONE, duplicated: 1 });
    expect(counts(OUTPUT, NOT_JSON + failed('model_not_found') + answered(1, 'a'))).to.include({
      duplicated: 1,
    });
  });

  it('tell of a line that is missing, and of a file that is cut short', () => {
    expect(counts(answered(1, 'a'))).to.include({ ...NONE, missing: 1 });
    expect(counts(OUTPUT.slice(0, -10))).to.include({ ...NONE, missing: 1, wrong: 1 });
    expect(counts('', '')).to.include({ ...NONE, missing: 4, told: 3 });
  });

  it('tell of lines out of order', () => {
    expect(counts(answered(3, 'c') + answered(1, 'a'))).to.include({ ...NONE, outOfOrder: 1 });
  });

  it('tell of an answer that is not the line’s: value, name, error or file', () => {
    expect(counts(answered(1, 'a', 'c') + answered(3, 'c', 'a'))).to.include({ ...NONE, wrong: 2 });
    expect(counts(answered(1, 'c') + answered(3, 'a'))).to.include({ ...NONE, wrong: 2 });
    expect(counts(OUTPUT, NOT_JSON + failed('internal'))).to.include({ ...NONE, wrong: 1 });
    expect(counts(answered(1, 'a') + NOT_JSON, failed('model_not_found') + answered(3, 'c'))).to.include({
      wrong: 2,
    });
    expect(counts(OUTPUT + answered(9, 'i'))).to.include({ ...NONE, wrong: 1 });
  });
});
