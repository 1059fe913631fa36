import { type Releasers, type Settings, StartupError, settingsToEnv } from '@millrace/shared';
import type { Host } from '../host.js';
import type { Refused } from '../messages.js';
import { openProgress } from '../progress.js';
import { startChild } from './child-process.js';

/**
 * Fetches and builds what is missing of the models to serve, and shows how far it is. Another process does
 * the work: building keeps its thread busy for seconds, and Ctrl-C must be heard.
 * @throws StartupError when a model can't be had.
 */
export async function prepareInChild(settings: Settings, host: Host, releasers: Releasers): Promise<void> {
  const child = startChild({
    name: 'models',
    mainFile: host.mainFile,
    args: ['models', 'prepare'],
    env: { ...host.env, ...settingsToEnv(settings) },
  });
  let wanted = true;
  // Told to stop, it keeps what it has fetched; the next start goes on from there.
  releasers.push(async () => {
    wanted = false;
    child.signal('SIGTERM');
    await child.ended;
  });
  host.stop.forced.addEventListener('abort', () => child.signal('SIGKILL'));
  const progress = openProgress(host);
  let refused: Refused | undefined;
  child.onMessage((message) => {
    if (message.type === 'progress') progress.show(message);
    if (message.type === 'refused') refused = message;
  });
  const how = await child.ended;
  progress.close();
  if (refused) throw new StartupError(refused.sentence, refused.nextStep);
  if (how !== 'exit code 0' && wanted) {
    throw new StartupError(`Preparing the models ended with ${how}.`, 'Its output is above.');
  }
}
