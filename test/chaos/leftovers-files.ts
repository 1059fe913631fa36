import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger, RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { FILES_PREFIX, fileOfKey } from '#gateway/files/file-record.js';
import { FileRecords } from '#gateway/files/file-records.js';
import { LocalStore } from '#gateway/files/local-store.js';
import { FileSweeper } from '#gateway/files/sweeper.js';

/** What no file names is swept when it is so old, in ms: a day and some. */
const OLD_MS = 25 * 3600 * 1000;
/** Nothing is kept here, so nothing is limited. */
const LIMITS = { maxFileBytes: 1, maxFileBytesPerKey: 1, maxFilesPerKey: 1, fileKeepMs: 1 };

/**
 * What is in the folder of files that no file will ever name, and what files name that is not there; a sentence each.
 * What gateways that were killed have left there may wait for its sweeping: it is made old and swept.
 */
export async function leftInFiles(redis: Redis, folder: string): Promise<string[]> {
  const store = new LocalStore(folder);
  const records = new FileRecords({ redis, clock: new RedisClock(), limits: LIMITS });
  await makeOld(folder);
  await new FileSweeper({ redis, records, store, logger: createLogger('silent', {}) }).sweep();
  const left = (await allFiles(folder))
    .filter((path) => path.endsWith('.tmp'))
    .map((path) => `the half-written file ${path}`);
  const there = new Set<string>();
  for await (const { key } of store.list(FILES_PREFIX)) {
    there.add(key);
    const record = await records.find(fileOfKey(key) ?? '');
    if (!record?.segments.some((segment) => segment.key === key)) left.push(`the object ${key} of no file`);
  }
  for (const key of await redis.keys('mr-file:*')) {
    const record = await records.find(key.slice('mr-file:'.length));
    for (const segment of record?.segments ?? []) {
      if (!there.has(segment.key)) left.push(`the file ${record?.id}, whose object ${segment.key} is gone`);
    }
  }
  return left;
}

async function makeOld(folder: string): Promise<void> {
  const then = new Date(Date.now() - OLD_MS);
  for (const path of await allFiles(folder)) await utimes(path, then, then);
}

async function allFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
