import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildEncoder, DataType, GraphBuilder } from '@millrace/onnx';
import { createLogger, loadSettings, type SessionOptions, type Settings } from '@millrace/shared';
import { expect } from 'chai';
import { type PreparedModel, prepareModel } from '../models/prepare.js';
import { ServedModel } from '../models/served-model.js';
import { CurveStore } from '../planning/curve-store.js';
import { PreprocessPool } from '../tasks/preprocess-pool.js';
import { quantizeDynamically } from '../test-support/dynamic-int8.js';
import { profileModel } from './profile-model.js';
import type { Trial } from './search.js';
import { storeTuning, TOLERANCE, tuneModel } from './tune-model.js';

const MODELS = join(import.meta.dirname, '../../../../models');
const silent = createLogger('silent', {});

describe('tuning a model', () => {
  let folder: string;
  let settings: Settings;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-tuning-'));
    settings = loadSettings(
      {},
      { dataDir: join(folder, 'data'), cacheDir: join(folder, 'cache'), modelsDir: folder },
    );
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function model(name: string, onnx: Uint8Array, manifest: object): Promise<PreparedModel> {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, name, 'model.onnx'), onnx);
    const document = { name, version: 1, build: { from: 'onnx', file: 'model.onnx' }, ...manifest };
    await writeFile(join(folder, name, 'model.yaml'), JSON.stringify(document));
    const { modelsDir, cacheDir } = settings;
    return prepareModel({ modelsDir, cacheDir, name, env: {} });
  }

  function gelu(): Promise<PreparedModel> {
    const graph = new GraphBuilder('gelu');
    graph.input('x', DataType.FLOAT, ['batch', 64]);
    const weight = graph.constant(
      'w',
      [64, 64],
      Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i) / 8),
    );
    const value = graph.op('MatMul', ['x', weight]);
    const erf = graph.op('Erf', [graph.op('Div', [value, graph.scalar(Math.SQRT2)])]);
    const gate = graph.op('Mul', [value, graph.op('Add', [erf, graph.scalar(1)])]);
    graph.op('Mul', [gate, graph.scalar(0.5)], {}, 'y');
    graph.output('y', DataType.FLOAT, ['batch', 64]);
    const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [-1, 64] });
    return model('gelu', graph.toBytes(), { task: 'tensor', inputs: [tensor('x')], outputs: [tensor('y')] });
  }

  async function served(
    prepared: PreparedModel,
    own = settings,
    logger = silent,
  ): Promise<{ options: SessionOptions; threads: number }> {
    const pool = new PreprocessPool(1);
    const curves = new CurveStore(own.dataDir, silent);
    const loaded = await ServedModel.load(prepared, own, pool, curves, logger);
    await loaded.close();
    await pool.close();
    return { options: loaded.options, threads: loaded.sessions.clients.length };
  }

  it('tries every fusion at work and every way to share the cores, and offers the manifest’s options first', async () => {
    const prepared = await gelu();
    const seen: Trial[] = [];
    const found = await tuneModel({
      prepared,
      settings,
      logger: silent,
      seconds: 5,
      onTrial: (trial) => seen.push(trial),
    });
    expect(found.profile.map(({ kind }) => kind)).to.include('Gelu');
    expect(seen).to.deep.equal(found.trials);
    expect(seen.map(({ change }) => change)).to.include.members([
      'without GeluFusionL1 and GeluFusionL2',
      'optimization level basic',
    ]);
    for (const { difference } of seen) expect(difference?.largest ?? 0).to.be.at.most(1e-5);
    expect(found.layouts.every(({ rawItemsPerSecond }) => rawItemsPerSecond > 0)).to.equal(true);
    expect(found.candidates[0]).to.deep.equal(found.manifest);
    expect(found.samples).to.have.length(64);
  }).timeout(30_000);

  it('is what serving goes by from then on, but for a thread count that a person set', async () => {
    const prepared = await gelu();
    const choice = { ...prepared.manifest.session, threads: 1, disabledOptimizers: ['GeluFusionL2'] };
    expect((await served(prepared)).options).to.deep.equal(prepared.manifest.session);
    await storeTuning(settings.dataDir, silent, prepared, settings, choice);
    expect(await served(prepared)).to.deep.equal({ options: choice, threads: 1 });
    expect((await served(prepared, { ...settings, sessionThreads: 2 })).threads).to.equal(2);
    const profile = await profileModel(prepared, settings, silent, { measure: false });
    expect(profile.options).to.deep.equal(choice);
    expect(profile.nodes.map(({ kind }) => kind)).to.include('MatMul');
  });

  it('does not keep a model from being served when its choice is broken', async () => {
    const prepared = await gelu();
    const { path } = await storeTuning(
      settings.dataDir,
      silent,
      prepared,
      settings,
      prepared.manifest.session,
    );
    await writeFile(path, 'not JSON');
    expect((await served(prepared)).options).to.deep.equal(prepared.manifest.session);
  });

  it('does not keep it from being served when its choice no longer loads, and says so', async () => {
    const prepared = await gelu();
    const { session } = prepared.manifest;
    // onnxruntime refuses a setting of this length.
    const choice = { ...session, threads: 1, disabledOptimizers: ['x'.repeat(10_000)] };
    await storeTuning(settings.dataDir, silent, prepared, settings, choice);
    const said: string[] = [];
    const logger = Object.assign(Object.create(silent), {
      error: (_: unknown, line: string) => said.push(line),
    });
    expect((await served(prepared, settings, logger)).options).to.deep.equal(session);
    expect(said.join()).to.include('no longer load').and.to.include('millrace tune');
  });

  it('finds by itself that fusing layer normalizations costs a quarter of a dynamically quantized encoder', async () => {
    const official = await prepareModel({
      modelsDir: MODELS,
      cacheDir: process.env.MILLRACE_TEST_MODELS ?? '',
      name: 'all-minilm-l6-v2',
      env: {},
    });
    const { build, files, embedding, text } = official.manifest as Extract<
      PreparedModel['manifest'],
      { task: 'text-embedding' }
    >;
    if (build.from !== 'bert') throw new Error('the default model is no encoder');
    const float = buildEncoder({
      safetensors: await readFile(official.files[build.weights] ?? ''),
      config: build.config,
      pooling: build.pooling,
      normalize: build.normalize,
    });
    const dynamic = quantizeDynamically(float, build.config.hidden_size);
    const tokenizer = 'tokenizer.json';
    await mkdir(join(folder, 'dynamic', 'samples'), { recursive: true });
    await symlink(official.files[tokenizer] ?? '', join(folder, 'dynamic', tokenizer));
    await symlink(
      join(MODELS, official.manifest.name, 'samples/evaluation.txt'),
      join(folder, 'dynamic/samples/evaluation.txt'),
    );
    const prepared = await model('dynamic', dynamic, {
      task: 'text-embedding',
      files: { [tokenizer]: files[tokenizer] },
      text,
      embedding,
    });

    const trials: Trial[] = [];
    const stop = new AbortController();
    const found = tuneModel({
      prepared,
      settings,
      logger: silent,
      seconds: 100,
      signal: stop.signal,
      onTrial: (trial) => {
        trials.push(trial);
        // The rest of the search is another test's; here it would take half a minute.
        if (trial.change === 'without SkipLayerNormFusion') stop.abort();
      },
    });
    await found.catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
    const trial = trials.find(({ change }) => change === 'without SkipLayerNormFusion');
    expect(trial?.verdict).to.equal('taken');
    // Measured 1.33; how much it is depends on the machine and what else runs on it.
    expect(trial?.speed).to.be.above(1.1);
    expect(trial?.difference?.mean).to.be.below(TOLERANCE);
  }).timeout(90_000);
});
