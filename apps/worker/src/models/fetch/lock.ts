import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 150;
const BEAT_MS = 1_000;
/** A holder that has not touched its lock for this long is taken to be dead. */
const STALE_MS = 20_000;

/**
 * Runs `work` while holding the lock file, so that of several processes one fetches and builds and the others
 * find what it made. It saves work; nothing depends on it for being right, since every file is verified
 * and put in place by rename. That is why a holder may be judged by its heartbeat alone, which also holds
 * across containers, where process ids say nothing.
 *
 * @param onWait called once if another process holds it.
 */
export async function withLock<T>(
  path: string,
  signal: AbortSignal,
  onWait: () => void,
  work: () => Promise<T>,
): Promise<T> {
  const id = randomUUID();
  await mkdir(dirname(path), { recursive: true });
  let told = false;
  while (!(await take(path, id))) {
    signal.throwIfAborted();
    if (await removeIfStale(path)) continue;
    if (!told) onWait();
    told = true;
    await sleep(POLL_MS, undefined, { signal });
  }
  const beat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, BEAT_MS);
  beat.unref();
  try {
    return await work();
  } finally {
    clearInterval(beat);
    if ((await ownerOf(path)) === id) await rm(path, { force: true });
  }
}

async function take(path: string, id: string): Promise<boolean> {
  try {
    await writeFile(path, id, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function removeIfStale(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return true;
  if (Math.abs(Date.now() - found.mtimeMs) < STALE_MS) return false;
  // Renamed before it is removed, so that of two who find it stale only one takes it away.
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return true;
  }
  await rm(aside, { force: true });
  return true;
}

async function ownerOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
