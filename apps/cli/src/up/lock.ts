import { randomBytes } from 'node:crypto';
import { renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder, StartupError } from '@millrace/shared';
import { socketFolder } from '../redis/socket-folder.js';

const ANSWER_TIMEOUT_MS = 1000;
/** Longer than another start can need between finding a dead lock and replacing it. */
const SETTLE_MS = 50;

/** How long a start waits for another one that is already stopping. */
const STOPPING_PATIENCE_MS = 30_000;
const STOPPING_POLL_MS = 100;
const STOPPING = ' stopping';

export interface Lock {
  /** From now on, another start that wants the folder waits for it instead of refusing. */
  stopping(): void;
  release(): Promise<void>;
}

/**
 * Takes a data folder for one `millrace up`. The lock is a unix socket that answers with its owner's pid:
 * the system closes it however the owner dies, so that a dead owner's lock can be told from a living one's.
 * @throws StartupError naming the process that has the folder.
 */
export async function lockDataFolder(
  dataDir: string,
  pid: number,
  say: (line: string) => void = () => undefined,
): Promise<Lock> {
  const path = join(await writableFolder(dataDir), 'lock.sock');
  await untilStopped(path, say);
  const owner = new Owner(pid);
  if (await listens(owner.server, path)) return owner.lockOf(path);
  return takeOver(dataDir, path, owner);
}

/** Ctrl-C gives a terminal back before everything has ended: who starts again at once waits that long. */
async function untilStopped(path: string, say: (line: string) => void): Promise<void> {
  const deadline = performance.now() + STOPPING_PATIENCE_MS;
  let said = false;
  for (;;) {
    const answer = await ownerOf(path);
    if (!answer?.endsWith(STOPPING) || performance.now() > deadline) return;
    if (!said) say(`Waiting for process ${answer.replace(STOPPING, '')}, which is stopping...`);
    said = true;
    await sleep(STOPPING_POLL_MS);
  }
}

/**
 * Replaces a lock whose owner is dead. The new socket is made beside the old one and renamed over it, which
 * is one step; and closing it removes the name that it was made with, never another start's lock.
 */
async function takeOver(dataDir: string, path: string, owner: Owner): Promise<Lock> {
  const draft = `${path}.${randomBytes(3).toString('hex')}`;
  await listens(owner.server, draft);
  const other = await ownerOf(path);
  if (other === undefined) {
    renameSync(draft, path);
    // Two starts may have found the same dead lock, and the second replaced the first one's new lock with
    // its own. Whoever is answered by somebody else afterwards has lost.
    await sleep(SETTLE_MS);
    if ((await ownerOf(path)) === owner.answer) return owner.lockOf(path);
  }
  owner.server.close();
  throw taken(dataDir, other ?? (await ownerOf(path)));
}

/** The server behind a lock, which says whose it is. */
class Owner {
  readonly server: Server;
  answer: string;

  constructor(pid: number) {
    this.answer = String(pid);
    this.server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(this.answer);
    });
    // The lock alone keeps no process alive.
    this.server.unref();
  }

  lockOf(path: string): Lock {
    const { server } = this;
    return {
      stopping: () => {
        if (!this.answer.endsWith(STOPPING)) this.answer += STOPPING;
      },
      release: async () => {
        await rm(path, { force: true });
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }
}

/** Makes the data folder; returns that of its sockets. */
async function writableFolder(dataDir: string): Promise<string> {
  try {
    await makeFolder(dataDir, 0o700);
    return await socketFolder(dataDir);
  } catch (cause) {
    if (cause instanceof StartupError) throw cause;
    throw new StartupError(
      `The data folder ${dataDir} cannot be written (${(cause as NodeJS.ErrnoException).code}).`,
      'Choose another one with --data-dir or MILLRACE_DATA_DIR.',
      { cause },
    );
  }
}

function listens(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      server.removeListener('listening', onListening);
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    };
    const onListening = () => {
      server.removeListener('error', onError);
      resolve(true);
    };
    server.once('error', onError).once('listening', onListening).listen(path);
  });
}

/** What the lock's owner answers; undefined when nobody does: it is dead. */
function ownerOf(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    let answer = '';
    // A living owner that is too busy to answer in time still has the folder.
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => settle(''));
    socket.setEncoding('utf8');
    socket.on('data', (text) => {
      answer += text;
    });
    socket.once('end', () => settle(answer));
    socket.once('error', () => settle(undefined));
    function settle(owner: string | undefined): void {
      socket.destroy();
      resolve(owner);
    }
  });
}

function taken(dataDir: string, answer: string | undefined): StartupError {
  const owner = answer?.replace(STOPPING, '');
  const who = owner ? `process ${owner}` : 'another start';
  return new StartupError(
    `The data folder ${dataDir} is in use by ${who}.`,
    `Stop it${owner ? ` (kill ${owner})` : ''}, or choose another folder with --data-dir (and another --port).`,
  );
}
