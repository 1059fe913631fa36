import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ModelBuild,
  prepareModel as makeModel,
  RecipeError,
  SafetensorsError,
  UnsupportedModelError,
} from '@millrace/onnx';
import { type Manifest, StartupError } from '@millrace/shared';
import { builtDirOf, modelFileDir, workDirOf } from './fetch/layout.js';
import { withLock } from './fetch/lock.js';
import type { OnProgress } from './fetch/types.js';
import { hashFile } from './fetch/verify.js';
import { builderSha256 } from './prepare-key.js';

export interface BuildOptions {
  manifest: Manifest;
  modelDir: string;
  cacheDir: string;
  /** Local paths of the official files by manifest name. */
  files: Readonly<Record<string, string>>;
  signal: AbortSignal;
  onProgress: OnProgress;
}

export interface BuiltModel {
  modelFile: string;
  modelSha256: string;
}

type EncoderBuild = Extract<Manifest['build'], { from: 'bert' }>;

/** Thrown to end a look into the cache where a build would begin. */
class NotBuilt extends Error {}

const BUILD_FAULTS = [UnsupportedModelError, SafetensorsError, RecipeError];

/**
 * The ONNX file to run: the one listed, or one made from the official files, cached under the hash of all
 * that went into it, the code that makes it included.
 * @throws StartupError when something it is made from is missing or doesn't fit.
 */
export async function buildModel(options: BuildOptions): Promise<BuiltModel> {
  const { build } = options.manifest;
  switch (build.from) {
    case 'onnx':
      return readyFile(build.file, options);
    case 'identity':
      return built({ from: 'identity' }, options);
    case 'bert':
      return built(await encoderBuild(build, options), options);
  }
}

async function readyFile(file: string, { manifest, modelDir, files }: BuildOptions): Promise<BuiltModel> {
  const listed = files[file];
  const sha256 = manifest.files[file]?.sha256;
  if (listed !== undefined && sha256 !== undefined) return { modelFile: listed, modelSha256: sha256 };
  const modelFile = join(modelDir, file);
  if (!(await isFile(modelFile))) {
    throw new StartupError(
      `The model ${manifest.name} runs ${file}, but ${modelFile} is not there.`,
      `Put the file there, or list it under "files" with its sources.`,
    );
  }
  return { modelFile, modelSha256: await hashFile(modelFile) };
}

async function encoderBuild(
  build: EncoderBuild,
  { manifest, modelDir, files }: BuildOptions,
): Promise<ModelBuild> {
  const path = files[build.weights];
  const sha256 = manifest.files[build.weights]?.sha256;
  if (path === undefined || sha256 === undefined) {
    throw new StartupError(
      `The manifest of ${manifest.name} builds from ${build.weights}, which it doesn't list under "files".`,
      'List it with its bytes and sha256.',
    );
  }
  const recipe = build.recipe === undefined ? undefined : join(modelDir, build.recipe);
  if (build.precision === 'int8' && (recipe === undefined || !(await isFile(recipe)))) {
    throw new StartupError(
      `The model ${manifest.name} is quantized by a recipe, and ${recipe ?? 'its manifest names none'}${recipe ? ' is not there' : ''}.`,
      'Put the recipe there and name it under "build", or set the precision in the manifest to fp32.',
    );
  }
  return { ...build, weights: { path, sha256 }, recipe };
}

/** One process builds; those that come meanwhile wait and find what it made. */
async function built(build: ModelBuild, options: BuildOptions): Promise<BuiltModel> {
  const { manifest, cacheDir, signal, onProgress } = options;
  const { name: model } = manifest;
  const dir = modelFileDir(cacheDir, manifest);
  const folder = join(builtDirOf(dir), (await builderSha256()).slice(0, 12));
  const look = () => {
    throw new NotBuilt();
  };
  const ready = await makeModel(build, folder, look).catch((error: unknown) => {
    if (error instanceof NotBuilt) return undefined;
    throw cantBuild(model, error);
  });
  if (ready) return { modelFile: ready.path, modelSha256: ready.sha256 };
  const say = (step: 'wait' | 'build', fraction: number, detail: string) =>
    onProgress({ model, step, fraction, detail });
  const onWait = () => say('wait', 0, 'another process is building it');
  return withLock(join(workDirOf(dir), 'lock'), signal, onWait, async () => {
    const { path, sha256 } = await makeModel(build, folder, (stage, fraction) =>
      say('build', fraction, stage),
    ).catch((error: unknown) => {
      throw cantBuild(model, error);
    });
    say('build', 1, 'built');
    return { modelFile: path, modelSha256: sha256 };
  });
}

/** A model that the builder can't follow is a fault of the manifest or its files; anything else is ours. */
function cantBuild(name: string, cause: unknown): unknown {
  if (!BUILD_FAULTS.some((fault) => cause instanceof fault)) return cause;
  return new StartupError(
    `The model ${name} can't be built: ${(cause as Error).message}.`,
    'Compare "build" in its manifest, and the recipe it names, with its weights and their config.json.',
    { cause },
  );
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() ?? false;
}
