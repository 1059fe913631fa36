import { createLogger, type Settings } from '@millrace/shared';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { untilAborted } from '../until.js';
import { requireRedisUrl } from './gateway.js';

/** `millrace worker`: one worker until it is told to stop or can't go on. */
export async function runWorker(settings: Settings, host: Host): Promise<number> {
  requireRedisUrl(settings, 'worker');
  const { startWorker } = await loadWorker();
  const worker = await startWorker(
    settings,
    createLogger(settings.logLevel, { process: 'worker' }),
    host.env,
  );
  if (host.parent) host.parent.tell({ type: 'ready', url: worker.healthUrl, models: worker.models });
  else {
    const names = worker.models.map(({ name }) => name).join(', ');
    host.say(`Worker ${worker.id} serves ${names}; health at ${worker.healthUrl}. Stop it with Ctrl-C.`);
  }
  const failure = await Promise.race([untilAborted(host.stop.asked), worker.failed]);
  await worker.drain();
  if (failure === undefined) return 0;
  host.say(`Worker ${worker.id} cannot go on: ${failure.message}`);
  return 1;
}
