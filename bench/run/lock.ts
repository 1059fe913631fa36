import { createServer } from 'node:net';

/** A port nobody is given by the system, so that its holder is a bench. */
const LOCK_PORT = 28_917;

/**
 * Two benches on one machine would measure each other: the port is held as long as this process lives.
 * @throws Error when another one holds it.
 */
export async function lockMachine(): Promise<void> {
  const server = createServer((socket) => socket.destroy()).unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(
              `Another bench runs on this machine (port ${LOCK_PORT} is taken). Wait until it has ended.`,
            )
          : error,
      );
    });
    server.listen({ host: '127.0.0.1', port: LOCK_PORT }, resolve);
  });
}
