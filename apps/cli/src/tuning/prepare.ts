import { loadManifest, type Settings } from '@millrace/shared';
import type { PreparedModel } from '@millrace/worker';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { openProgress } from '../progress.js';

/** Fetches and builds a model where that isn't done yet, showing its progress; undefined when told to stop. */
export async function prepareShowing(
  settings: Settings,
  host: Host,
  name: string,
): Promise<PreparedModel | undefined> {
  // An unknown name is said before anything slow begins.
  await loadManifest(settings.modelsDir, name);
  const { prepareModel } = await loadWorker();
  const { modelsDir, cacheDir } = settings;
  const progress = openProgress(host);
  try {
    return await prepareModel({
      modelsDir,
      cacheDir,
      name,
      env: host.env,
      signal: host.stop.asked,
      onProgress: progress.show,
    });
  } catch (error) {
    if (host.stop.asked.aborted) return undefined;
    throw error;
  } finally {
    progress.close();
  }
}
