import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type ModelFile, makeFolder } from '@millrace/shared';
import { nameOf } from './layout.js';
import { SourceFailure, type WantedFile } from './types.js';

/**
 * Whether a file is the one the manifest names. `missing` and `wrong` come with a phrase for a person.
 *
 * Hashing 90 MB takes 0.1 to 0.3 s, too long for every start, so a file found right leaves a marker of its
 * size, inode, mtime and ctime, and is hashed again whenever one of them differs. Every ordinary write moves
 * ctime, which can't be set back. What this can't see is a disk that rots under unchanged metadata;
 * removing the marker (or its folder) makes the next start hash again.
 */
export async function checkFile(
  path: string,
  expected: ModelFile,
  workDir: string,
): Promise<{ state: 'right' } | { state: 'missing' | 'wrong'; why: string }> {
  const before = await identity(path);
  if (before === undefined) return { state: 'missing', why: 'is not there' };
  if (before.size !== expected.bytes) {
    return { state: 'wrong', why: `has ${before.size} bytes instead of ${expected.bytes}` };
  }
  const marker = markerPath(path, workDir);
  const known = await readFile(marker, 'utf8').catch(() => undefined);
  if (known === markerText(before.key, expected.sha256)) return { state: 'right' };
  const sha256 = await hashFile(path);
  if (sha256 !== expected.sha256) return { state: 'wrong', why: `has the sha256 ${sha256}` };
  const after = await identity(path);
  if (after?.key === before.key) await writeMarker(marker, before.key, sha256);
  return { state: 'right' };
}

/**
 * Moves a finished download to where it belongs if it is the right file, and deletes it otherwise.
 * @throws SourceFailure when size or hash are wrong.
 */
export async function placeVerified(temporary: string, wanted: WantedFile, workDir: string): Promise<void> {
  const { size } = await stat(temporary);
  const sha256 = size === wanted.bytes ? await hashFile(temporary) : undefined;
  if (sha256 !== wanted.sha256) {
    await rm(temporary, { force: true });
    const fault = sha256 === undefined ? `${size} bytes instead of ${wanted.bytes}` : `the sha256 ${sha256}`;
    throw new SourceFailure(`it gave another file, with ${fault}`);
  }
  // On the disk before it has its name: a marker must never vouch for what a power cut took back.
  await syncFile(temporary);
  await makeFolder(dirname(wanted.path));
  await rename(temporary, wanted.path);
  const placed = await identity(wanted.path);
  if (placed) await writeMarker(markerPath(wanted.path, workDir), placed.key, wanted.sha256);
}

/** The sha256 of a file, in lower-case hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk);
  return hash.digest('hex');
}

async function identity(path: string): Promise<{ size: number; key: string } | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined || !found.isFile()) return undefined;
  const key = [found.size, found.ino, found.mtimeNs, found.ctimeNs].join(' ');
  return { size: Number(found.size), key };
}

function markerPath(path: string, workDir: string): string {
  return join(workDir, `${basename(path)}.${nameOf(path)}.verified`);
}

function markerText(key: string, sha256: string): string {
  return `${sha256} ${key}\n`;
}

/** A marker that can't be written only costs the next start a hash. */
async function writeMarker(marker: string, key: string, sha256: string): Promise<void> {
  await mkdir(dirname(marker), { recursive: true }).catch(() => undefined);
  await writeFile(marker, markerText(key, sha256)).catch(() => undefined);
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
