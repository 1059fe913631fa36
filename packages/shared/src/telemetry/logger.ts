import { type Logger, pino } from 'pino';

export type { Logger };

/** JSON lines on stderr; stdout is kept for what a person or a script asked to read. */
export function createLogger(level: string, bindings: Record<string, unknown>): Logger {
  return pino({ level, base: bindings, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
