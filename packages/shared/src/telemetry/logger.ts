import { type Logger, pino, type SerializedError, stdSerializers } from 'pino';

export type { Logger };

/** JSON lines on stderr; stdout is kept for what a person or a script asked to read. */
export function createLogger(level: string, bindings: Record<string, unknown>): Logger {
  return pino(
    {
      level,
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: withoutCommand },
    },
    pino.destination(2),
  );
}

/** An error of Redis carries its command: a client's input, or a password. Only the command's name is written. */
export function withoutCommand(error: Error): SerializedError {
  const written = stdSerializers.err(error);
  const { command } = written as { command?: { name?: unknown } };
  if (command) Object.assign(written, { command: command.name });
  return written;
}
