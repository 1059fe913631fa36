import { MillraceError } from '@millrace/shared';
import { expect } from 'chai';
import { parseStrictJson } from './strict-json.js';

const parse = (text: string | Buffer, maxDepth = 8): unknown => parseStrictJson(Buffer.from(text), maxDepth);
const codeOf = (text: string | Buffer): string => {
  try {
    parse(text);
  } catch (error) {
    return error instanceof MillraceError ? error.code : String(error);
  }
  return 'none';
};

describe('parseStrictJson', () => {
  it('parses what is JSON', () => {
    expect(parse('{"a":[1,"\\u0000",null]}')).to.deep.equal({ a: [1, '\u0000', null] });
    expect(parse('\ufeff{"a":1}')).to.deep.equal({ a: 1 });
    expect(parse('"[[[[[[[[[["')).to.equal('[[[[[[[[[[');
    expect(parse('["\\"[[[[[[[[[[[["]')).to.deep.equal(['"[[[[[[[[[[[[']);
    expect(parse(`[${'[[[[[[[]]]]]]],'.repeat(5)}1]`)).to.have.length(6);
  });

  it('refuses more values than can be parsed without holding up everybody, strings of commas not counted', () => {
    const many = (n: number): string => `[${Array(n).fill('[]').join(',')}]`;
    expect(codeOf(many(500_001))).to.equal('body_too_large');
    expect(parse(many(499_000))).to.have.length(499_000);
    expect(parse(JSON.stringify([','.repeat(1_200_000)]))).to.have.length(1);
  });

  it('says where JSON breaks off, and that a body is empty', () => {
    expect(() => parse('{"a": 1 "b": 2}')).to.throw(/not valid JSON at character 8\./);
    expect(() => parse('{"a": [1,')).to.throw(/not valid JSON: it ends too early\./);
    expect(() => parse('{"secret": tru}')).to.throw(/not valid JSON\.$/);
    expect(() => parse('')).to.throw(/empty/);
  });

  it('keeps __proto__ an ordinary key', () => {
    const parsed = parse('{"__proto__":{"polluted":true},"a":1}') as Record<string, unknown>;
    expect(Object.keys(parsed)).to.deep.equal(['__proto__', 'a']);
    expect(parsed).not.to.have.property('polluted');
  });

  it('counts depth outside strings only', () => {
    expect(codeOf('[[[[[[[[1]]]]]]]]')).to.equal('none');
    expect(codeOf('[[[[[[[[[1]]]]]]]]]')).to.equal('nesting_too_deep');
    expect(codeOf('{"a":'.repeat(20))).to.equal('nesting_too_deep');
  });

  it('finds the end of long strings, whatever they escape', () => {
    for (const inside of ['x', '\\\\', '\\"', '\\\\\\"', '\\u0022[', '[{']) {
      for (let length = 0; length < 200; length += 7) {
        const text = `${'x'.repeat(length)}${inside.repeat(60)}`;
        const nested = `["${text}",${'['.repeat(6)}1${']'.repeat(6)},"${text}"]`;
        expect(codeOf(nested), nested).to.equal('none');
        expect(codeOf(`["${text}",${'['.repeat(8)}1${']'.repeat(8)},"${text}"]`), nested).to.equal(
          'nesting_too_deep',
        );
      }
    }
  });

  it('refuses what is not UTF-8 and what is not JSON, without quoting it', () => {
    expect(codeOf(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).to.equal('invalid_encoding');
    expect(codeOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).to.equal('invalid_encoding');
    expect(codeOf('{"secret"')).to.equal('invalid_json');
    expect(() => parse('{"secret"')).to.throw(/^(?!.*secret)/);
    for (const text of ['', 'NaN', "{'a':1}", '[1,]', '"\t"', '01'])
      expect(codeOf(text), text).to.equal('invalid_json');
  });
});
