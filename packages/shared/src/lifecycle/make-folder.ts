import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder and those above it that are missing. Node's own recursive mkdir never returns where the
 * system answers "no such file" for a parent that is there, as /proc does: a mistyped path would hang.
 * @throws Error of the system call: ENOENT, EACCES, ENOTDIR, EROFS, ENOSPC ...
 */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  const missing: string[] = [];
  let at = resolve(path);
  while (!(await isFolder(at)) && dirname(at) !== at) {
    missing.push(at);
    at = dirname(at);
  }
  for (const folder of missing.reverse()) {
    await mkdir(folder, { mode }).catch(async (error: NodeJS.ErrnoException) => {
      // Another process may make the same folder at the same time.
      if (error.code !== 'EEXIST' || !(await isFolder(folder))) throw error;
    });
  }
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() ?? false;
}
