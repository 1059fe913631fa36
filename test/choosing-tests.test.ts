import { expect } from 'chai';

interface Chosen {
  files: string[];
  options: string[];
}

const { parseTestArguments } = (await import(
  new URL('../../scripts/lib/tests.mjs', import.meta.url).href
)) as { parseTestArguments(args: readonly string[]): Chosen };

describe('what npm test is asked to run', () => {
  it('is the compiled file of a test, beside code or in test/', () => {
    const { files } = parseTestArguments(['apps/gateway/src/batches/segments.test.ts', 'test/setup.test.ts']);
    expect(files).to.deep.equal(['apps/gateway/dist/batches/segments.test.js', 'test/dist/setup.test.js']);
  });

  it('is every test under a folder', () => {
    const { files } = parseTestArguments(['apps/gateway/src/batches/']);
    expect(files).to.include('apps/gateway/dist/batches/segments.test.js');
    expect(files.every((file) => file.startsWith('apps/gateway/dist/batches/'))).to.equal(true);
    expect(parseTestArguments(['test']).files).to.include('test/dist/conformance/conformance.test.js');
  });

  it('leaves options to mocha, and the text that some of them look for', () => {
    for (const flag of ['-g', '--grep', '-f', '--fgrep']) {
      const options = [flag, 'test', '--bail'];
      expect(parseTestArguments(options)).to.deep.equal({ files: [], options });
    }
    const options = ['--grep=test'];
    expect(parseTestArguments(options)).to.deep.equal({ files: [], options });
  });

  it('is refused where no such test is there, rather than everything run', () => {
    expect(() => parseTestArguments(['test/gone.test.ts'])).to.throw('there is no test test/gone.test.ts');
    expect(() => parseTestArguments(['models'])).to.throw('there are no tests in models');
  });
});
