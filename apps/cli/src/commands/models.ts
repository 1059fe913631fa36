import { listModels, loadManifest, type Settings } from '@millrace/shared';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { openProgress } from '../progress.js';

/** `millrace models list`. */
export async function listModelsCommand(settings: Settings, host: Host): Promise<number> {
  const names = await listModels(settings.modelsDir);
  if (names.length === 0) host.say(`There are no models in ${settings.modelsDir}.`);
  for (const name of names) {
    const { version, task, description } = await loadManifest(settings.modelsDir, name);
    host.say(`${name}  version ${version}  ${task}${description ? `  ${description}` : ''}`);
  }
  return 0;
}

/** `millrace models prepare [NAME]`: one model, or every one that would be served. */
export async function prepareModels(
  settings: Settings,
  host: Host,
  name: string | undefined,
): Promise<number> {
  const names = name === undefined ? settings.models : [name];
  // An unknown name is said before anything slow begins.
  for (const each of names) await loadManifest(settings.modelsDir, each);
  const { prepareModel } = await loadWorker();
  const { modelsDir, cacheDir } = settings;
  const signal = host.stop.asked;
  for (const each of names) {
    const progress = openProgress(host);
    try {
      const onProgress = progress.show;
      await prepareModel({ modelsDir, cacheDir, name: each, env: host.env, signal, onProgress });
    } catch (error) {
      // Told to stop: what is fetched so far is kept, and the next run goes on from there.
      if (signal.aborted) return 1;
      throw error;
    } finally {
      progress.close();
    }
    if (!host.parent) host.say(`${each} is ready.`);
  }
  return 0;
}
