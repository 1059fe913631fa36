import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '@millrace/shared';

/** A gateway whose parent was killed lets go of its port within this. */
const PATIENCE_MS = 1000;
const POLL_MS = 100;

/**
 * Makes sure that a port can be had before anything slow is done.
 * @throws StartupError saying why not.
 */
export async function checkPort(
  host: string,
  port: number,
  flag: 'port' | 'grpc-port' = 'port',
): Promise<void> {
  if (port === 0) return;
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const fault = await tryPort(host, port);
    if (!fault) return;
    if (fault.code !== 'EADDRINUSE' || performance.now() > deadline) throw refusal(host, port, flag, fault);
    await sleep(POLL_MS);
  }
}

async function tryPort(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  const fault = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once('error', resolve);
    server.listen({ host, port, exclusive: true }, () => resolve(undefined));
  });
  if (!fault) await new Promise((resolve) => server.close(resolve));
  return fault;
}

function refusal(host: string, port: number, flag: string, cause: NodeJS.ErrnoException): StartupError {
  const next = port < 65_535 ? port + 1 : port - 1;
  switch (cause.code) {
    case 'EADDRINUSE':
      return new StartupError(
        `Port ${port} on ${host} is taken by another program.`,
        `Stop that program, or choose another port with --${flag} ${next}${flag === 'port' ? ` (or PORT=${next})` : ''}.`,
        { cause },
      );
    case 'EACCES':
      return new StartupError(
        `Port ${port} needs rights that this user does not have.`,
        `Choose one from 1024 up with --${flag}.`,
        { cause },
      );
    default:
      return new StartupError(
        `This machine cannot listen on ${host}, port ${port} (${cause.code ?? cause.message}).`,
        'Choose another address with --host.',
        { cause },
      );
  }
}
