import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { requireWritable } from './collect.js';

describe('the places of results', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-places-'));
  });
  after(() => rm(folder, { recursive: true }));

  const faultOf = (out: string, errors: string): Promise<string | undefined> =>
    requireWritable({ out, errors }).then(
      () => undefined,
      (error: Error) => error.message,
    );

  it('are files in folders that can be written into, which is found out before anything is run', async () => {
    const file = join(folder, 'out.jsonl');
    expect(await faultOf(file, join(folder, 'errors.jsonl'))).to.equal(undefined);
    expect(await faultOf(folder, file)).to.equal(`${folder} is a folder.`);
    expect(await faultOf(file, folder)).to.equal(`${folder} is a folder.`);
    expect(await faultOf(join(folder, 'none', 'out.jsonl'), file)).to.match(/^Nothing can be written into/);
  });
});
