import { join } from 'node:path';
import {
  connectRedis,
  loadManifest,
  type ModelDescription,
  Releasers,
  type Settings,
  settingsToEnv,
  untilReady,
} from '@millrace/shared';
import type { Host } from '../host.js';
import { openProgress, type ProgressView } from '../progress.js';
import { keptPassword } from '../redis/config-file.js';
import { startPrivateRedis } from '../redis/private-redis.js';
import { untilAborted } from '../until.js';
import { type ChildSpec, startChild } from './child-process.js';
import { lockDataFolder } from './lock.js';
import { checkPort } from './port.js';
import { untilGatewayReady } from './ready.js';
import { summary } from './summary.js';
import { Supervised } from './supervised.js';

const PASSWORD_FILE = 'dashboard-password';

/**
 * `millrace up`: everything on this machine, until it is told to stop. What can fail fast comes first; what
 * is acquired pushes its release, so that everything ends in the reverse order: the gateway answers what it
 * has taken, then workers finish what they hold, then Redis closes its file.
 */
export async function up(given: Settings, host: Host): Promise<number> {
  const releasers = new Releasers();
  let stopping = 'Stopping...';
  // After whatever else listens: a progress bar is closed before its line is written in.
  void untilAborted(host.stop.asked).then(() => host.say(stopping));
  try {
    // Not raced against being told to stop: each step ends soon by itself, and what it acquired is known.
    const settings = await makeReady(given, host, releasers);
    if (host.stop.asked.aborted) return 0;
    const stopped = untilAborted(host.stop.asked);
    const served = await Promise.race([startChildren(settings, host, releasers), stopped]);
    if (served) {
      stopping = 'Stopping: the gateway answers what it has taken, then the workers finish what they hold...';
      const passwordFile = given.dashboardPassword ? undefined : join(given.dataDir, PASSWORD_FILE);
      for (const line of summary({ ...served, settings, passwordFile })) host.say(line);
    }
    await stopped;
    return 0;
  } finally {
    await releasers.release();
    if (host.stop.asked.aborted) host.say('Stopped.');
  }
}

/** What the children need to start with: the data folder, the port, Redis, the passwords. */
async function makeReady(given: Settings, host: Host, releasers: Releasers): Promise<Settings> {
  for (const model of given.models) await loadManifest(given.modelsDir, model);
  const lock = await lockDataFolder(given.dataDir, host.pid, host.say);
  releasers.push(() => lock.release());
  host.stop.asked.addEventListener('abort', () => lock.stopping());
  await checkPort(given.host, given.port);
  if (typeof given.grpcPort === 'number') await checkPort(given.host, given.grpcPort, 'grpc-port');
  const redisUrl = await reachRedis(given, host, releasers);
  const dashboardPassword = given.dashboardPassword || (await keptPassword(given.dataDir, PASSWORD_FILE));
  return { ...given, redisUrl, dashboardPassword };
}

/** The first thing said once nothing stands in the way: what follows takes seconds. */
function sayStarting(host: Host, { workers, redisUrl }: Settings): void {
  const redis = redisUrl === '' ? 'Redis, ' : '';
  host.say(`Starting ${redis}the gateway and ${workers} worker${workers === 1 ? '' : 's'}...`);
}

/** The person's Redis if it answers, or a private one of ours. */
async function reachRedis(settings: Settings, host: Host, releasers: Releasers): Promise<string> {
  if (settings.redisUrl !== '') {
    const redis = connectRedis(settings.redisUrl, 'subscriber', 'up');
    try {
      await untilReady(redis);
    } finally {
      redis.disconnect();
    }
    sayStarting(host, settings);
    return settings.redisUrl;
  }
  sayStarting(host, settings);
  const redis = await startPrivateRedis({
    dataDir: settings.dataDir,
    maxmemory: settings.redisMaxMemory,
    appendfsync: settings.redisFsync,
    keepAlive: true,
    say: host.say,
  });
  releasers.push(() => redis.stop());
  return redis.url;
}

/**
 * Starts the gateway, which needs no models and may refuse its settings before anything is fetched, and the
 * workers, which fetch and build what is missing: one does it and shows how far it is, the others wait.
 */
async function startChildren(
  settings: Settings,
  host: Host,
  releasers: Releasers,
): Promise<{ url: string; grpc?: string; models: ModelDescription[]; workerUrls: string[] }> {
  const env = { ...host.env, ...settingsToEnv(settings) };
  const progress = openProgress(host);
  releasers.push(progress.close);
  const supervise = (
    name: string,
    command: string,
    own: () => NodeJS.ProcessEnv,
    onProgress?: ProgressView['show'],
  ): Supervised => {
    const spec = (): ChildSpec => ({
      name,
      mainFile: host.mainFile,
      args: [command],
      env: { ...env, ...own() },
    });
    return new Supervised(spec, host.say, startChild, onProgress);
  };

  const workers = Array.from({ length: settings.workers }, (_, i) =>
    supervise(`worker ${i + 1}`, 'worker', () => ({}), i === 0 ? progress.show : undefined),
  );
  releasers.push(async () => {
    await Promise.all(workers.map((worker) => worker.stop(settings.graceMs)));
  });
  // Free ports, once found, are what the gateway comes back to after a crash.
  let { port, grpcPort } = settings;
  const gateway = supervise('gateway', 'gateway', () => ({
    MILLRACE_PORT: String(port),
    MILLRACE_GRPC_PORT: String(grpcPort),
  }));
  releasers.push(() => gateway.stop(settings.graceMs));
  // Ctrl-C reaches every process of a terminal at once: one that is still starting ends before it is told to.
  host.stop.asked.addEventListener('abort', () => {
    progress.close();
    for (const child of [gateway, ...workers]) child.letEnd();
  });
  host.stop.forced.addEventListener('abort', () => {
    for (const child of [gateway, ...workers]) child.kill9();
  });

  const gatewayStarts = gateway.start().then((ready) => {
    port = ready.port ?? port;
    grpcPort = ready.grpc?.port ?? grpcPort;
    return ready;
  });
  const [gatewayReady, ...workersReady] = await Promise.all([
    gatewayStarts,
    ...workers.map((worker) => worker.start()),
  ]);
  progress.close();
  await untilGatewayReady(gatewayReady.url, host.stop.asked);
  return {
    url: gatewayReady.url,
    ...(gatewayReady.grpc ? { grpc: gatewayReady.grpc.address } : {}),
    models: workersReady[0]?.models ?? [],
    workerUrls: workersReady.map((ready) => ready.url),
  };
}
