import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StartupError } from '../errors/millrace-error.js';
import { loadManifest } from './load.js';

describe('the models folder', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-models-'));
    for (const name of ['models', 'outside']) {
      await mkdir(join(folder, name, 'x'), { recursive: true });
      await writeFile(join(folder, name, 'x', 'model.yaml'), 'name: x');
    }
    await writeFile(join(folder, 'outside', 'model.yaml'), 'name: outside');
  });
  after(() => rm(folder, { recursive: true }));

  it('is not left by a name, whatever lies there', async () => {
    const models = join(folder, 'models');
    const names = [
      '../outside',
      '..',
      '.',
      '',
      '/',
      join(folder, 'outside'),
      'x/../../outside',
      'x\0',
      'x/',
      './x',
    ];
    for (const name of names) {
      const error = await loadManifest(models, name).catch((reason: unknown) => reason);
      expect(error, name).to.be.instanceOf(StartupError);
      expect((error as StartupError).message).to.match(/^There is no model ".*" in /);
    }
  });
});
