import { MillraceError } from '@millrace/shared';
import type { ModelDirectory } from '../../inference/model-directory.js';

/** One version of a model, or a model of which no version is known, as Triton's repository index has it. */
interface IndexEntry {
  name: string;
  version?: string;
  state: 'READY' | 'UNAVAILABLE';
  reason: string;
}

/** All models that workers have announced or that this gateway is set to serve. */
export function repositoryIndex(directory: ModelDirectory, onlyReady: boolean): IndexEntry[] {
  const known = directory.list();
  const entries: IndexEntry[] = known.map(({ description: { name, version }, ready }) => ({
    name,
    version,
    state: ready ? 'READY' : 'UNAVAILABLE',
    reason: ready ? '' : 'no worker serves it now',
  }));
  for (const name of directory.names()) {
    if (known.some(({ description }) => description.name === name)) continue;
    entries.push({ name, state: 'UNAVAILABLE', reason: 'no worker has announced it yet' });
  }
  return onlyReady ? entries.filter(({ state }) => state === 'READY') : entries;
}

/** @throws MillraceError `unsupported`, always. */
export function refuseToMove(): never {
  throw new MillraceError(
    'unsupported',
    'Models are not loaded or unloaded while a server runs: each worker serves those that it was started with, for as long as it runs.',
  );
}
