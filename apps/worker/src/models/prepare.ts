import { join, resolve } from 'node:path';
import { loadManifest, type Manifest, StartupError } from '@millrace/shared';
import { ensureFiles } from './fetch/ensure.js';
import type { FetchLimits, OnProgress } from './fetch/types.js';
import { buildModel } from './prepare-build.js';

export type { PrepareProgress } from './fetch/types.js';

export interface PrepareOptions {
  /** Folder of model folders. */
  modelsDir: string;
  /** Where fetched and built files are kept; made if it isn't there. */
  cacheDir: string;
  /** Name of the model, which is its folder's. */
  name: string;
  /** The environment: the hub's and pip's own variables are read from it. */
  env: NodeJS.ProcessEnv;
  onProgress?: OnProgress;
  signal?: AbortSignal;
  /** How long sources may keep silent, where the defaults don't fit. */
  limits?: Partial<FetchLimits>;
}

export interface PreparedModel {
  manifest: Manifest;
  /** The ONNX file to run. */
  modelFile: string;
  modelSha256: string;
  /** Local paths of the official files by manifest name. */
  files: Record<string, string>;
}

/**
 * Brings a model to where it can be run: reads its manifest, makes sure of its official files and of the
 * ONNX file made from them. Does nothing but look when all is there. Several processes may call it at once.
 *
 * @throws StartupError with the next step when that can't be done; the signal's reason.
 */
export async function prepareModel(options: PrepareOptions): Promise<PreparedModel> {
  const manifest = await loadManifest(options.modelsDir, options.name);
  const common = {
    manifest,
    modelDir: resolve(options.modelsDir, options.name),
    cacheDir: resolve(options.cacheDir),
    signal: options.signal ?? new AbortController().signal,
    onProgress: options.onProgress ?? (() => undefined),
  };
  try {
    const files = await ensureFiles({ ...common, env: options.env, limits: options.limits });
    const built = await buildModel({ ...common, files });
    common.onProgress({ model: manifest.name, step: 'ready', fraction: 1 });
    return { manifest, ...built, files };
  } catch (error) {
    throw diskFault(error, join(common.cacheDir, manifest.name)) ?? error;
  }
}

const DISK_CODES = new Set([
  'ENOENT',
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EACCES',
  'EPERM',
  'ENOTDIR',
  'EEXIST',
  'EIO',
]);

/** Whatever a source does wrong has its own error; what is left with these codes is the local disk. */
function diskFault(error: unknown, dir: string): StartupError | undefined {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined || !DISK_CODES.has(code)) return undefined;
  return new StartupError(
    `The model cache ${dir} can't be written: ${(error as Error).message}.`,
    'Make room or give the folder to this user, or set MILLRACE_CACHE_DIR to another folder.',
    { cause: error },
  );
}
