import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeFolder } from './make-folder.js';

describe('making a folder', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-folder-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('makes those above it too, several at once, and is content with one that is there', async () => {
    const deep = join(folder, 'a', 'b', 'c');
    await Promise.all([makeFolder(deep, 0o700), makeFolder(deep, 0o700), makeFolder(join(folder, 'a'))]);
    await makeFolder(deep);
    expect((await stat(deep)).isDirectory()).to.equal(true);
    expect((await stat(deep)).mode & 0o777).to.equal(0o700);
  });

  it('fails at once where none can be made', async () => {
    await writeFile(join(folder, 'file'), '');
    const codes = [];
    for (const path of [join(folder, 'file', 'below'), '/proc/millrace-nowhere/below']) {
      codes.push(
        await makeFolder(path).then(
          () => 'made',
          ({ code }: NodeJS.ErrnoException) => code,
        ),
      );
    }
    expect(codes).not.to.include('made');
  });
});
