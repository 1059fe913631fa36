import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { StartupError } from '@millrace/shared';

/** A unix socket's path holds 104 bytes on macOS and 108 on Linux, the end mark included. */
const MAX_SOCKET_PATH = 103;
const LONGEST_NAME = '/redis.sock';

/**
 * The folder for a data folder's sockets, for its owner alone: inside the data folder, or, where that path
 * is too long for a socket, one in the temporary folder that its path always leads to.
 */
export async function socketFolder(dataDir: string): Promise<string> {
  const inside = join(resolve(dataDir), 'run');
  if (Buffer.byteLength(inside + LONGEST_NAME) <= MAX_SOCKET_PATH) return ownFolder(inside);
  const hash = createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16);
  return ownFolder(join(tmpdir(), `millrace-${userInfo().uid}-${hash}`));
}

async function ownFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const found = await lstat(path);
  // In a shared temporary folder somebody else may have laid this name before us.
  if (!found.isDirectory() || (userInfo().uid >= 0 && found.uid !== userInfo().uid)) {
    throw new StartupError(
      `${path} belongs to somebody else.`,
      'Choose another data folder with --data-dir.',
    );
  }
  await chmod(path, 0o700);
  return path;
}
