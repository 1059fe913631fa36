import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Manifest } from '@millrace/shared';

/**
 * The folder of one model version in the cache: `<cacheDir>/<name>/<version>`. Its official files lie in it
 * under their manifest names, `.work` holds what is unfinished, `built` the ONNX files made from them.
 */
export function modelFileDir(cacheDir: string, manifest: Pick<Manifest, 'name' | 'version'>): string {
  return resolve(cacheDir, manifest.name, manifest.version);
}

/** Where unfinished downloads, the lock and the markers of verified files lie. */
export function workDirOf(fileDir: string): string {
  return join(fileDir, '.work');
}

/** Where ONNX files made on this machine lie. */
export function builtDirOf(fileDir: string): string {
  return join(fileDir, 'built');
}

/** A short file name for any text. */
export function nameOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
