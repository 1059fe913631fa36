import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildEncoder } from '../encoder/build.js';
import { quantizeEncoder, searchRecipe } from '../quantize/encoder.js';
import { formatRecipe, RecipeError } from '../quantize/recipe.js';
import { randomCheckpoint, randomTexts, TINY_BERT } from '../test-support/checkpoint.js';
import { type EncoderBuild, prepareModel } from './prepare.js';

const checkpoint = randomCheckpoint(TINY_BERT);
const source = { ...checkpoint, pooling: 'mean', normalize: true } as const;

describe('a prepared model', () => {
  let folder: string;
  let cache: string;
  let build: EncoderBuild;
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-onnx-'));
    cache = join(folder, 'deep', 'cache');
    const path = join(folder, 'model.safetensors');
    await writeFile(path, checkpoint.safetensors);
    build = {
      from: 'bert',
      weights: { path, sha256: sha256(checkpoint.safetensors) },
      config: checkpoint.config,
      pooling: 'mean',
      normalize: true,
      precision: 'fp32',
    };
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('is made once and then found', async () => {
    const first = await prepareModel(build, cache);
    const content = await readFile(first.path);
    expect(content.equals(buildEncoder(source))).to.equal(true);
    expect(first).to.include({ made: true, bytes: content.length, sha256: sha256(content) });
    await rm(build.weights.path);
    expect(await prepareModel(build, cache)).to.deep.equal({ ...first, made: false });
    expect((await readdir(cache)).filter((name) => name.endsWith('.part'))).to.deep.equal([]);
  });

  it('is made again when it was cut off, changed or left without its note', async () => {
    const first = await prepareModel(build, cache);
    const damage = [
      () => truncate(first.path, 100),
      () => writeFile(first.path, Buffer.alloc(first.bytes)),
      () => rm(`${first.path}.json`),
      () => writeFile(`${first.path}.json`, '{'),
    ];
    for (const harm of damage) {
      await harm();
      expect(await prepareModel(build, cache)).to.deep.equal(first);
    }
  });

  it('is another one when anything that it depends on changes, and the same in another order', async () => {
    const { path } = await prepareModel(build, cache);
    const reordered = Object.fromEntries(Object.entries(build.config).reverse());
    expect((await prepareModel({ ...build, config: reordered }, cache)).path).to.equal(path);
    const others: EncoderBuild[] = [
      { ...build, pooling: 'cls' },
      { ...build, normalize: false },
      { ...build, config: { ...build.config, hidden_act: 'relu' } },
      { ...build, weights: { ...build.weights, sha256: 'other' } },
    ];
    const paths = await Promise.all(others.map((other) => prepareModel(other, cache)));
    expect(new Set([path, ...paths.map((file) => file.path)])).to.have.length(5);
  });

  it('is whole when several make it at once', async () => {
    const files = await Promise.all([1, 2, 3].map(() => prepareModel(build, cache)));
    expect(new Set(files.map((file) => file.sha256))).to.have.length(1);
    const [file] = files;
    expect(sha256(await readFile(file?.path ?? ''))).to.equal(file?.sha256);
  });

  it('is quantized by a recipe file, with progress', async () => {
    const recipe = await searchRecipe(source, randomTexts(20));
    const path = join(folder, 'recipe.json');
    await writeFile(path, formatRecipe(recipe));
    const stages: string[] = [];
    const int8 = { ...build, precision: 'int8', recipe: path } as const;
    const file = await prepareModel(int8, cache, (stage) => stages.push(stage));
    expect((await readFile(file.path)).equals(quantizeEncoder(source, recipe))).to.equal(true);
    expect(stages).to.deep.equal(['read', 'quantize', 'write']);
    await writeFile(path, formatRecipe({ ...recipe, weightsSha256: 'other' }));
    const failure = await prepareModel(int8, cache).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(RecipeError);
  });

  it('is not made in INT8 without a recipe', async () => {
    const failure = await prepareModel({ ...build, precision: 'int8' }, cache).catch(
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(RecipeError);
  });

  it('may be the identity model', async () => {
    const file = await prepareModel({ from: 'identity' }, cache);
    expect(file.made).to.equal(true);
    expect((await prepareModel({ from: 'identity' }, cache)).made).to.equal(false);
  });
});
