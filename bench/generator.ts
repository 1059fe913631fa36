/** The load generator's process: one load at a time, as the runner asks for it over the channel. */
import { generate } from './load/generate.js';
import type { FromGenerator, ToGenerator } from './load/messages.js';

const tell = (message: FromGenerator): void => void process.send?.(message);

process.on('disconnect', () => process.exit(0));
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.on('message', ({ spec }: ToGenerator) => {
  generate(spec, () => tell({ type: 'measuring' })).then(
    (report) => tell({ type: 'report', report }),
    (error: Error) => tell({ type: 'failed', message: error.message }),
  );
});
