import { createServer } from 'node:net';
import { StartupError } from '@millrace/shared';

/**
 * Makes sure that a port can be had before anything slow is done.
 * @throws StartupError saying why not.
 */
export async function checkPort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, resolve);
    });
  } catch (cause) {
    throw refusal(host, port, cause as NodeJS.ErrnoException);
  }
  await new Promise((resolve) => server.close(resolve));
}

function refusal(host: string, port: number, cause: NodeJS.ErrnoException): StartupError {
  const next = port < 65_535 ? port + 1 : port - 1;
  switch (cause.code) {
    case 'EADDRINUSE':
      return new StartupError(
        `Port ${port} on ${host} is taken by another program.`,
        `Stop that program, or choose another port: npm start -- --port ${next} (or PORT=${next}).`,
        { cause },
      );
    case 'EACCES':
      return new StartupError(
        `Port ${port} needs rights that this user does not have.`,
        'Choose one from 1024 up with --port.',
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
