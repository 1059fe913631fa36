import { dirname, join, resolve } from 'node:path';
import { listModels, type Settings } from '@millrace/shared';

type Folders = Pick<Settings, 'modelsDir' | 'cacheDir' | 'dataDir'>;

/**
 * A start's folders, absolute: messages can be followed from anywhere, and child processes mean the same.
 *
 * @param mayFallBack whether the models folder is only the default: then, where the current folder has no
 *   models, it is the one that came with the program.
 */
export async function absoluteFolders(
  { modelsDir, cacheDir, dataDir }: Folders,
  mainFile: string,
  mayFallBack: boolean,
): Promise<Folders> {
  const here = resolve(modelsDir);
  const fallsBack = mayFallBack && (await listModels(here)).length === 0;
  return {
    // apps/cli/dist/main.js -> models
    modelsDir: fallsBack ? join(dirname(mainFile), '..', '..', '..', 'models') : here,
    cacheDir: resolve(cacheDir),
    dataDir: resolve(dataDir),
  };
}
