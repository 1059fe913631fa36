import { once } from 'node:events';
import { chmod, lstat, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect, createServer, type Server as NetServer } from 'node:net';
import { StartupError } from '@millrace/shared';

/** What the kernels' address takes, in bytes: 108 on Linux, 104 on macOS, with a zero at the end. */
const MAX_PATH_BYTES = 103;

/**
 * Lets a server serve at a unix socket too; its connections are served, limited and counted as all others are. A
 * socket that a dead process left is replaced; the file goes when the listener is closed.
 * @param mode permissions in octal digits, such as 660: who may write to it may connect.
 * @throws StartupError when another process listens there, or the path can't be used.
 */
export async function listenOnSocket(server: Server, path: string, mode: string): Promise<NetServer> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw refusal(path, `its path has more than ${MAX_PATH_BYTES} bytes, which no kernel takes`);
  }
  await removeStale(path);
  const listener = createServer({ allowHalfOpen: true }, (socket) => server.emit('connection', socket));
  try {
    await once(listener.listen({ path }), 'listening');
    await chmod(path, Number.parseInt(mode, 8));
  } catch (error) {
    listener.close();
    throw refusal(path, (error as Error).message, error);
  }
  return listener;
}

async function removeStale(path: string): Promise<void> {
  let isSocket: boolean;
  try {
    isSocket = (await lstat(path)).isSocket();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw refusal(path, (error as Error).message, error);
  }
  if (!isSocket) throw refusal(path, 'there is a file that is no socket');
  if (await answers(path)) throw refusal(path, 'another process listens there');
  await unlink(path);
}

/** Whether somebody listens: of a process that died only the file is left, and connecting is refused. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function refusal(path: string, why: string, cause?: unknown): StartupError {
  return new StartupError(
    `Can't listen on the unix socket ${path}: ${why}.`,
    'Choose another with --socket-path (MILLRACE_SOCKET_PATH), or stop what listens there.',
    { cause },
  );
}
