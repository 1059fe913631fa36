import { expect } from 'chai';
import { JsonSource } from './json-source.js';

function leavesAt(text: string, path: (string | number)[]): string[] | undefined {
  const source = new JsonSource(Buffer.from(text));
  const at = source.find(path);
  if (at === undefined) return undefined;
  const leaves: string[] = [];
  source.eachLeaf(at, (leaf) => leaves.push(leaf));
  return leaves;
}

describe('the text of parsed JSON', () => {
  it('is found by path, and read value by value', () => {
    const text = '{"a": [ {"b":"x]}\\"", "d": [1, [ -2e5,3.0 ],"s\\\\", true,[], {"k":[1]} ] } ,7]}';
    expect(leavesAt(text, ['a', 0, 'd'])).to.deep.equal(['1', '-2e5', '3.0', '"s\\\\"', 'true', '{"k":[1]}']);
    expect(leavesAt(text, ['a', 1])).to.deep.equal(['7']);
  });

  it('takes the last of repeated keys, however they are written, as JSON.parse does', () => {
    const text = '\ufeff{"n":[1],"n" :[2],"\\u006e":\n[3],"m":[4]}';
    expect(JSON.parse(text.slice(1)).n).to.deep.equal([3]);
    expect(leavesAt(text, ['n'])).to.deep.equal(['3']);
  });

  it('has no value where there is none', () => {
    for (const path of [['x'], ['a', 2], ['a', 0, 'b'], [0]]) {
      expect(leavesAt('{"a":[1,2]}', path)).to.equal(undefined);
    }
  });
});
