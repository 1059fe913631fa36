import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIdentity, readModel } from '@millrace/onnx';
import type { StartupError } from '@millrace/shared';
import { expect } from 'chai';
import { ModelFolder, specOf } from './fetch/testing/model-folder.js';
import { TINY_CONFIG, tinyEncoder, tinyRecipe } from './fetch/testing/tiny-encoder.js';
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

  describe('of an encoder', () => {
    const weights = tinyEncoder();
    let folder: ModelFolder;
    const make = async (build: Record<string, unknown> = {}) => {
      folder = await ModelFolder.make([], {
        files: { 'tiny.safetensors': specOf(weights) },
        build: {
          from: 'bert',
          weights: 'tiny.safetensors',
          config: TINY_CONFIG,
          precision: 'fp32',
          ...build,
        },
      });
      await folder.write(folder.beside('tiny.safetensors'), weights);
    };
    afterEach(() => folder.remove());

    it('is built from the weights, and anew when the manifest builds it otherwise', async () => {
      await make();
      const { modelFile } = await folder.prepare({});
      const { graph } = readModel(await readFile(modelFile));
      expect(graph?.input?.map(({ name }) => name)).to.deep.equal(['input_ids', 'attention_mask']);
      expect((await folder.prepare({})).modelFile).to.equal(modelFile);
      const manifest = folder.beside('model.yaml');
      const text = await readFile(manifest, 'utf8');
      await writeFile(manifest, text.replace('"from":"bert"', '"from":"bert","pooling":"cls"'));
      expect((await folder.prepare({})).modelFile).not.to.equal(modelFile);
    });

    it('is quantized by the recipe beside the manifest, and anew by another', async () => {
      await make({ precision: 'int8', recipe: 'recipe.json' });
      await folder.write(folder.beside('recipe.json'), tinyRecipe(weights, 0.01));
      const first = await folder.prepare({});
      const { graph } = readModel(await readFile(first.modelFile));
      expect(graph?.node?.map(({ op_type }) => op_type)).to.include('QuantizeLinear');
      await folder.write(folder.beside('recipe.json'), tinyRecipe(weights, 0.02));
      expect((await folder.prepare({})).modelSha256).not.to.equal(first.modelSha256);
    });

    it('is refused without its recipe, or with one for other weights', async () => {
      await make({ precision: 'int8', recipe: 'recipe.json' });
      expect((await folder.refusal({})).message).to.include(`${folder.beside('recipe.json')} is not there`);
      await folder.write(folder.beside('recipe.json'), tinyRecipe(Buffer.from('others'), 0.01));
      expect((await folder.refusal({})).message).to.include('the recipe is for weights');
    });

    it('is refused when the manifest does not fit to the weights', async () => {
      await make({ config: { ...TINY_CONFIG, hidden_size: 6 } });
      const { name, message } = await folder.refusal({});
      expect(name).to.equal('StartupError');
      expect(message).to.include("The model sample can't be built");
    });

    it('is refused when its weights are not listed', async () => {
      await make({ weights: 'other.safetensors' });
      expect((await folder.refusal({})).message).to.include('other.safetensors');
    });
  });
});
