import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { absoluteFolders } from './places.js';

describe('the folders of a start', () => {
  const MAIN = '/opt/millrace/apps/cli/dist/main.js';
  const OWN = '/opt/millrace/models';
  const folders = { modelsDir: 'models', cacheDir: 'cache', dataDir: '.millrace' };
  let empty: string;

  beforeEach(async () => {
    empty = await mkdtemp(join(tmpdir(), 'millrace-places-'));
  });

  afterEach(() => rm(empty, { recursive: true }));

  it('are absolute', async () => {
    const found = await absoluteFolders(folders, MAIN, false);
    expect(found).to.deep.equal({
      modelsDir: resolve('models'),
      cacheDir: resolve('cache'),
      dataDir: resolve('.millrace'),
    });
  });

  it("are the program's own models only where there are none and nobody named a folder", async () => {
    const modelsDir = join(empty, 'models');
    const found = async (mayFallBack: boolean) =>
      (await absoluteFolders({ ...folders, modelsDir }, MAIN, mayFallBack)).modelsDir;
    expect(await found(true)).to.equal(OWN);
    expect(await found(false)).to.equal(modelsDir);
    // Other things lie in folders of that name too.
    await mkdir(join(modelsDir, 'mine'), { recursive: true });
    expect(await found(true)).to.equal(OWN);
    await writeFile(join(modelsDir, 'mine', 'model.yaml'), '');
    expect(await found(true)).to.equal(modelsDir);
  });
});
