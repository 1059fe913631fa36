import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/**
 * Makes a file system of so many MiB in memory, at a folder that is not there yet.
 * @returns what takes it away; undefined where nobody may mount one: that takes root, and not every container lets it.
 */
export function mountSmallDisk(folder: string, mib: number): (() => void) | undefined {
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'none', folder], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return () => void execFileSync('umount', [folder]);
}
