import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { kill, pid } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from '@millrace/shared';

const POLL_MS = 150;
const BEAT_MS = 1_000;
/** A holder that has not touched its lock for this long is taken to be dead. */
const STALE_MS = 20_000;
/** Locks that this process holds or is about to take. */
const held = new Set<string>();

/**
 * Runs `work` while holding the lock file, so that of several processes one fetches and builds and the others
 * find what it made. It saves work; nothing depends on it for being right, since every file is verified
 * and put in place by rename. That is why a dead holder may be guessed: by its process id on this host, by
 * its heartbeat elsewhere.
 *
 * @param onWait called once if another process holds it.
 */
export async function withLock<T>(
  path: string,
  signal: AbortSignal,
  onWait: () => void,
  work: () => Promise<T>,
): Promise<T> {
  const id = JSON.stringify({ id: randomUUID(), host: hostname(), pid });
  await makeFolder(dirname(path));
  held.add(id);
  try {
    await waitAndTake(path, id, signal, onWait);
    return await whileBeating(path, work);
  } finally {
    if ((await ownerOf(path)) === id) await rm(path, { force: true });
    held.delete(id);
  }
}

async function waitAndTake(path: string, id: string, signal: AbortSignal, onWait: () => void): Promise<void> {
  let told = false;
  while (!(await take(path, id))) {
    signal.throwIfAborted();
    if (await removeIfStale(path)) continue;
    if (!told) onWait();
    told = true;
    await sleep(POLL_MS, undefined, { signal });
  }
}

async function whileBeating<T>(path: string, work: () => Promise<T>): Promise<T> {
  const beat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, BEAT_MS);
  beat.unref();
  try {
    return await work();
  } finally {
    clearInterval(beat);
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
  const young = Math.abs(Date.now() - found.mtimeMs) < STALE_MS;
  if (young && !isDead(await ownerOf(path))) return false;
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

/** Whether the holder was a process of this host that is gone. */
function isDead(owner: string | undefined): boolean {
  const holder = /"host":"(.+)","pid":(\d+)\}$/.exec(owner ?? '');
  if (owner === undefined || holder?.[1] !== hostname()) return false;
  const holderPid = Number(holder[2]);
  // A restarted container gives the same ids again.
  if (holderPid === pid) return !held.has(owner);
  try {
    return !kill(holderPid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

async function ownerOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
