import { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { comeBack, placesOf, programOf, takeBack } from './places.js';

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
  const program = ['millrace'];

  it('leads to the same server and the same files', () => {
    expect(comeBack('batch_1', { program, file: 'lines.jsonl' })).to.equal(
      'millrace batch lines.jsonl --resume batch_1',
    );
    expect(comeBack('batch_1', { program, file: '-', out: 'a b', url: 'http://h:1' })).to.equal(
      "millrace batch --resume batch_1 --out 'a b' --url http://h:1",
    );
    expect(takeBack('batch_1', { program })).to.equal('millrace batch --cancel batch_1');
  });

  it('is called by npx where this one is', () => {
    const said = { program: programOf({ npm_command: 'exec' }) };
    expect(comeBack('batch_1', said)).to.equal('npx millrace batch --resume batch_1');
    expect(takeBack('batch_1', said)).to.equal('npx millrace batch --cancel batch_1');
    // npm start and npm test are npm's too, and have it in their PATH.
    expect(programOf({ npm_command: 'run-script' })).to.deep.equal(['millrace']);
  });
});
