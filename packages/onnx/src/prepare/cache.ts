import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

export interface CachedFile {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * A file of the cache, made if it isn't there or isn't what it was when it was made. It appears under its name
 * only when it is complete, so several processes may do this at once.
 *
 * @param make called only if needed; what it returns is written.
 */
export async function cachedFile(
  folder: string,
  name: string,
  make: () => Promise<Uint8Array>,
): Promise<CachedFile & { made: boolean }> {
  const path = join(folder, name);
  const known = await intact(path);
  if (known !== undefined) return { ...known, made: false };
  const content = await make();
  const file = { path, sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length };
  await mkdir(folder, { recursive: true });
  await writeWhole(path, content);
  // Last: a file without its note is made again.
  await writeWhole(notePath(path), `${JSON.stringify({ sha256: file.sha256, bytes: file.bytes })}\n`);
  return { ...file, made: true };
}

const notePath = (path: string): string => `${path}.json`;

async function intact(path: string): Promise<CachedFile | undefined> {
  try {
    const note = JSON.parse(await readFile(notePath(path), 'utf8')) as { sha256: unknown; bytes: unknown };
    const hash = createHash('sha256');
    let bytes = 0;
    await pipeline(
      createReadStream(path, { highWaterMark: 1 << 20 }),
      async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) {
          hash.update(chunk);
          bytes += chunk.length;
        }
      },
    );
    const sha256 = hash.digest('hex');
    return note.sha256 === sha256 ? { path, sha256, bytes } : undefined;
  } catch {
    // Missing or unreadable: it will be made.
    return undefined;
  }
}

async function writeWhole(path: string, content: Uint8Array | string): Promise<void> {
  const temporary = `${path}.${randomUUID()}.part`;
  try {
    await writeFile(temporary, content);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
