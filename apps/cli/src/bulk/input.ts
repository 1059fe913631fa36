import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StartupError } from '@millrace/shared';
import type { UploadedFile } from './form.js';
import { nameOf, STDIN } from './places.js';

const SHAPE = 'It must have lines such as {"custom_id": "1", "body": {...}}; it may be packed with gzip.';

/**
 * Looks at the file that is to be run. Standard input is put into a file first: an upload that breaks off is sent again.
 * @param use may read the file until it resolves.
 * @throws StartupError where there is none, or nothing in it.
 */
export async function withInput<Result>(
  file: string,
  stdin: () => Readable,
  signal: AbortSignal,
  use: (input: UploadedFile) => Promise<Result>,
): Promise<Result> {
  if (file !== STDIN) return await use(await inputAt(file, nameOf(file)));
  const folder = await mkdtemp(join(tmpdir(), 'millrace-batch-'));
  try {
    const path = join(folder, nameOf(file));
    await pipeline(stdin(), createWriteStream(path), { signal });
    return await use(await inputAt(path, 'Standard input'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function inputAt(path: string, shown: string): Promise<UploadedFile> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new StartupError(`There is no file ${path}.`, SHAPE);
    throw error;
  });
  if (!found.isFile()) throw new StartupError(`${path} is no file.`, 'What comes from a pipe is named "-".');
  if (found.size === 0) throw new StartupError(`${shown} is empty.`, SHAPE);
  return { path, name: nameOf(path), bytes: found.size };
}
