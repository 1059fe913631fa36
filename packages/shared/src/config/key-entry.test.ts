import { expect } from 'chai';
import { readKeyEntries, writeKeyEntry } from './key-entry.js';

const HASH = '0a'.repeat(32);
const OTHER = '0b'.repeat(32);

describe('entries of API keys', () => {
  it('have a name, a hash and scopes; without scopes they infer and have jobs', () => {
    expect(readKeyEntries([`alice=${HASH}`, `ops=${OTHER}:admin+infer`])).to.deep.equal([
      { name: 'alice', hash: HASH, scopes: ['infer', 'jobs'] },
      { name: 'ops', hash: OTHER, scopes: ['admin', 'infer'] },
    ]);
  });

  it('are written as they are read', () => {
    for (const entry of [`alice=${HASH}`, `ops=${HASH}:admin`, `a.b-c_d=${HASH}:infer`]) {
      expect(readKeyEntries([entry]).map(writeKeyEntry)).to.deep.equal([entry]);
    }
    expect(writeKeyEntry({ name: 'a=b', hash: HASH, scopes: ['infer'] })).to.equal(undefined);
  });

  it('are refused in another form, without showing what was written', () => {
    for (const entry of [
      'mr_secret',
      `=${HASH}`,
      `-a=${HASH}`,
      `${'a'.repeat(65)}=${HASH}`,
      `alice=${HASH.toUpperCase()}`,
      `alice=${HASH}0`,
      `alice=${HASH}:`,
      `alice=${HASH}:root`,
      `alice=${HASH}:infer+`,
      `alice=${HASH}:Infer`,
      `alice=${HASH}\n`,
    ]) {
      expect(() => readKeyEntries([`ops=${OTHER}`, entry]), entry)
        .to.throw(/^must be NAME=SHA256HEX .*infer, jobs, admin; entry 2 is not$/)
        .with.property('message')
        .that.does.not.include(entry);
    }
  });

  it('must not repeat a name or a key', () => {
    expect(() => readKeyEntries([`a=${HASH}`, `b=${OTHER}`, `a=${'0c'.repeat(32)}`])).to.throw(
      'must not have one name twice; entries 1 and 3 have the same',
    );
    expect(() => readKeyEntries([`a=${HASH}`, `b=${HASH}:admin`])).to.throw(
      'must not have one key twice; entries 1 and 2 have the same',
    );
  });
});
