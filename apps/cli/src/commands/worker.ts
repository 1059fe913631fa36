import { createLogger, type Settings } from '@millrace/shared';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { openProgress } from '../progress.js';
import { untilAborted } from '../until.js';
import { requireRedisUrl } from './gateway.js';

/** `millrace worker`: one worker until it is told to stop or can't go on. */
export async function runWorker(settings: Settings, host: Host): Promise<number> {
  requireRedisUrl(settings, 'worker');
  const { startWorker } = await loadWorker();
  const progress = openProgress(host);
  const worker = await startWorker(settings, createLogger(settings.logLevel, { process: 'worker' }), {
    env: host.env,
    onProgress: progress.show,
    signal: host.stop.asked,
  })
    .catch((error: unknown) => {
      // Told to stop: what is fetched so far is kept, and the next start goes on from there.
      if (host.stop.asked.aborted) return undefined;
      throw error;
    })
    .finally(progress.close);
  if (!worker) return 1;
  if (host.parent) host.parent.tell({ type: 'ready', url: worker.healthUrl, models: worker.models });
  else {
    const names = worker.models.map(({ name }) => name).join(', ');
    host.say(`Worker ${worker.id} serves ${names}; health at ${worker.healthUrl}. Stop it with Ctrl-C.`);
  }
  const failure = await Promise.race([untilAborted(host.stop.asked), worker.failed]);
  if (failure) host.say(`Worker ${worker.id} cannot go on: ${failure.error.message}`);
  if (failure?.hung || (await worker.drain()) === 'kill') return host.killSelf();
  return failure ? 1 : 0;
}
