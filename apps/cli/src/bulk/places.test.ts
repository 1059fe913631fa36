import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { comeBack, placesOf, takeBack } from './places.js';

describe('where results of a batch go', () => {
  it('is beside the file, under its name without what it ends with', () => {
    const outOf = (file: string) => placesOf({ file }, 'batch_1').out;
    expect(placesOf({ file: 'a/lines.jsonl' }, 'batch_1')).to.deep.equal({
      out: 'a/lines.out.jsonl',
      errors: 'a/lines.errors.jsonl',
    });
    expect(outOf('lines.jsonl.gz')).to.equal('lines.out.jsonl');
    expect(outOf('lines.ndjson')).to.equal('lines.out.jsonl');
    expect(outOf('lines.v2')).to.equal('lines.v2.out.jsonl');
  });

  it('is named after the batch where no file names it', () => {
    expect(placesOf({}, 'batch_1').out).to.equal('batch_1.out.jsonl');
    expect(placesOf({ file: '-' }, 'batch_1').errors).to.equal('batch_1.errors.jsonl');
  });

  it('is never the input, nor one place for both, nor standard output', () => {
    for (const said of [
      { file: 'a', out: 'a' },
      { file: 'a', errors: 'a' },
      { out: 'b', errors: 'b' },
      // Standard output to other programs; here it would be a file of that name.
      { file: 'a', out: '-' },
      { file: 'a', errors: '-' },
    ]) {
      expect(() => placesOf(said, 'batch_1')).to.throw(StartupError);
    }
  });
});

describe('the command that comes back to a batch', () => {
  it('leads to the same server and the same files', () => {
    expect(comeBack('batch_1', { file: 'lines.jsonl' })).to.equal(
      'millrace batch lines.jsonl --resume batch_1',
    );
    expect(comeBack('batch_1', { file: '-', out: 'a b', url: 'http://h:1' })).to.equal(
      "millrace batch --resume batch_1 --out 'a b' --url http://h:1",
    );
    expect(takeBack('batch_1', { url: undefined })).to.equal('millrace batch --cancel batch_1');
  });
});
