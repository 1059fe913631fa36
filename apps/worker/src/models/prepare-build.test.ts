import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIdentity, readModel } from '@millrace/onnx';
import type { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { ModelFolder } from './fetch/testing/model-folder.js';
import { prepareModel } from './prepare.js';

describe('the ONNX file of a model', () => {
  let cacheDir: string;
  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'millrace-cache-'));
  });
  afterEach(() => rm(cacheDir, { recursive: true, force: true }));

  const identity = () =>
    prepareModel({
      modelsDir: join(import.meta.dirname, '../../../../models'),
      cacheDir,
      name: 'identity',
      env: {},
    });

  it('of the identity model is built once, with the tensors its manifest names', async () => {
    const { manifest, modelFile, modelSha256, files } = await identity();
    const bytes = await readFile(modelFile);
    expect(files).to.deep.equal({});
    const { graph } = readModel(bytes);
    if (manifest.task !== 'tensor') throw new Error('it is no tensor model');
    expect(graph?.input?.map(({ name }) => name)).to.deep.equal(manifest.inputs.map(({ name }) => name));
    expect(graph?.output?.map(({ name }) => name)).to.deep.equal(manifest.outputs.map(({ name }) => name));
    const steps: string[] = [];
    const again = await prepareModel({
      modelsDir: join(import.meta.dirname, '../../../../models'),
      cacheDir,
      name: 'identity',
      env: {},
      onProgress: ({ step }) => steps.push(step),
    });
    expect(again).to.include({ modelFile, modelSha256 });
    expect(steps).to.deep.equal(['ready']);
  });

  it('is built again when it was truncated or changed', async () => {
    const { modelFile, modelSha256 } = await identity();
    await truncate(modelFile, 10);
    expect((await identity()).modelSha256).to.equal(modelSha256);
    expect(await readFile(modelFile)).to.deep.equal(Buffer.from(buildIdentity()));
    await writeFile(modelFile, Buffer.alloc(buildIdentity().length));
    await identity();
    expect(await readFile(modelFile)).to.deep.equal(Buffer.from(buildIdentity()));
  });

  it('may lie beside the manifest unlisted, and is asked for when it does not', async () => {
    const folder = await ModelFolder.make([], { files: {} });
    try {
      const refusal: StartupError = await folder.refusal({});
      expect(refusal.message).to.equal(
        `The model sample runs model.onnx, but ${folder.beside('model.onnx')} is not there.`,
      );
      await folder.write(folder.beside('model.onnx'), buildIdentity());
      expect(await folder.prepare({})).to.include({ modelFile: folder.beside('model.onnx') });
    } finally {
      await folder.remove();
    }
  });
});
