import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buildEncoder, buildIdentity, SafetensorsError, UnsupportedModelError } from '@millrace/onnx';
import { type Manifest, StartupError } from '@millrace/shared';
import { builtDirOf, modelFileDir, nameOf, workDirOf } from './fetch/layout.js';
import { withLock } from './fetch/lock.js';
import type { OnProgress } from './fetch/types.js';
import { checkFile, hashFile } from './fetch/verify.js';
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

/**
 * The ONNX file to run: the one listed, or one made from the official files, cached under the hash of all
 * that went into it.
 * @throws StartupError when something it is made from is missing or doesn't fit.
 */
export async function buildModel(options: BuildOptions): Promise<BuiltModel> {
  const { build } = options.manifest;
  switch (build.from) {
    case 'onnx':
      return readyFile(build.file, options);
    case 'identity':
      return built('identity', options, async () => buildIdentity());
    case 'bert':
      return builtEncoder(build, options);
  }
}

async function readyFile(file: string, { manifest, modelDir, files }: BuildOptions): Promise<BuiltModel> {
  const listed = files[file];
  const sha256 = manifest.files[file]?.sha256;
  if (listed !== undefined && sha256 !== undefined) return { modelFile: listed, modelSha256: sha256 };
  const modelFile = join(modelDir, file);
  const found = await stat(modelFile).catch(() => undefined);
  if (!found?.isFile()) {
    throw new StartupError(
      `The model ${manifest.name} runs ${file}, but ${modelFile} is not there.`,
      `Put the file there, or list it under "files" with its sources.`,
    );
  }
  return { modelFile, modelSha256: await hashFile(modelFile) };
}

async function builtEncoder(build: EncoderBuild, options: BuildOptions): Promise<BuiltModel> {
  const { manifest, files } = options;
  const weights = files[build.weights];
  const weightsSha256 = manifest.files[build.weights]?.sha256;
  if (weights === undefined || weightsSha256 === undefined) {
    throw new StartupError(
      `The manifest of ${manifest.name} builds from ${build.weights}, which it doesn't list under "files".`,
      'List it with its bytes and sha256.',
    );
  }
  const key = JSON.stringify([weightsSha256, build]);
  return built(key, options, async () => {
    const safetensors = await readFile(weights);
    const config = { model_type: 'bert', ...build.config };
    return buildEncoder({ safetensors, config, pooling: build.pooling, normalize: build.normalize });
  });
}

/** The file of this key, made now if it is not there or no longer the one that was made. */
async function built(
  key: string,
  options: BuildOptions,
  make: () => Promise<Uint8Array>,
): Promise<BuiltModel> {
  const { manifest, cacheDir, signal, onProgress } = options;
  const dir = modelFileDir(cacheDir, manifest);
  const workDir = workDirOf(dir);
  const path = join(builtDirOf(dir), `${nameOf(`${await builderSha256()} ${key}`)}.onnx`);
  const ready = await findBuilt(path, workDir);
  if (ready) return ready;
  const model = manifest.name;
  const onWait = () =>
    onProgress({ model, step: 'wait', fraction: 0, detail: 'another process is building it' });
  return withLock(join(workDir, 'lock'), signal, onWait, async () => {
    const now = await findBuilt(path, workDir);
    if (now) return now;
    onProgress({ model, step: 'build', fraction: 0, detail: `building ${model}` });
    const bytes = await make().catch((cause: unknown) => {
      throw cantBuild(manifest, cause);
    });
    const modelSha256 = createHash('sha256').update(bytes).digest('hex');
    await writeAtomically(sidecarOf(path), `${modelSha256} ${bytes.length}\n`);
    await writeAtomically(path, bytes);
    await findBuilt(path, workDir); // leaves the marker that spares the next start the hash
    onProgress({ model, step: 'build', fraction: 1, detail: `built ${model}` });
    return { modelFile: path, modelSha256 };
  });
}

/** A model that the builder can't follow is a fault of the manifest or its files; anything else is ours. */
function cantBuild({ name }: Manifest, cause: unknown): unknown {
  if (!(cause instanceof UnsupportedModelError || cause instanceof SafetensorsError)) return cause;
  return new StartupError(
    `The model ${name} can't be built: ${cause.message}.`,
    'Compare "build" in its manifest with the config.json of its weights.',
    { cause },
  );
}

async function findBuilt(path: string, workDir: string): Promise<BuiltModel | undefined> {
  const text = await readFile(sidecarOf(path), 'utf8').catch(() => '');
  const [, sha256, bytes] = /^([0-9a-f]{64}) (\d+)\n$/.exec(text) ?? [];
  if (sha256 === undefined) return undefined;
  const check = await checkFile(path, { sha256, bytes: Number(bytes) }, workDir);
  return check.state === 'right' ? { modelFile: path, modelSha256: sha256 } : undefined;
}

/** What the file was when it was made. */
function sidecarOf(path: string): string {
  return `${path}.sha256`;
}

async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(temporary, content, { flush: true });
  await rename(temporary, path);
}
