// One set-up of a clone at a time: two at once would write into each other's node_modules and dist.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 100;
/** Longer than another start can need between finding a dead lock and removing it. */
const SETTLE_MS = 50;
const OWN = String(process.pid);
/** Where nothing can be written nothing can be set up either, and nothing needs to be kept apart. */
const NO_LOCK = { heldBy: () => undefined, release: () => undefined };

/**
 * Takes the lock, a file that holds the pids of who has it, waiting while one of them lives.
 * @returns `heldBy(pid)`, which adds a process that goes on even if we are killed, and `release()`.
 */
export async function takeSetupLock(path) {
  const draft = `${path}.${OWN}`;
  let said = false;
  let tookOver = false;
  for (;;) {
    const outcome = tryLock(draft, path);
    if (outcome === 'impossible') return NO_LOCK;
    if (outcome === 'taken') {
      // Two may have found the same dead lock, and the second removed the first one's new lock.
      if (tookOver) await sleep(SETTLE_MS);
      if (pidsIn(path).includes(OWN)) break;
      continue;
    }
    const owner = ownerOf(path);
    if (owner === undefined) {
      rmSync(path, { force: true });
      tookOver = true;
      continue;
    }
    if (!said)
      console.log(`Waiting for process ${owner}, which is installing or compiling here (${path})...`);
    said = true;
    await sleep(POLL_MS);
  }
  return {
    heldBy: (pid) => {
      writeFileSync(draft, `${OWN} ${pid}`);
      renameSync(draft, path);
    },
    release: () => {
      if (pidsIn(path).includes(OWN)) rmSync(path, { force: true });
    },
  };
}

function tryLock(draft, path) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(draft, OWN);
    // A link appears at once with all its content, and only where there is none yet.
    linkSync(draft, path);
    return 'taken';
  } catch (error) {
    return error.code === 'EEXIST' ? 'had by another' : 'impossible';
  } finally {
    rmSync(draft, { force: true });
  }
}

function ownerOf(path) {
  const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // The pids of before the machine was started are other processes' by now; and ours is ours.
  if (writtenAt < Date.now() - uptime() * 1000) return undefined;
  return pidsIn(path).find((pid) => pid !== OWN && isAlive(pid));
}

function pidsIn(path) {
  try {
    return readFileSync(path, 'utf8').trim().split(' ');
  } catch {
    return [];
  }
}

function isAlive(pid) {
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
