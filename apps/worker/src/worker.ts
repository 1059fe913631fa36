import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import {
  announce,
  CONTRACT_VERSION,
  connectRedis,
  LinkWatch,
  type Logger,
  type ModelDescription,
  RedisClock,
  Releasers,
  type Settings,
  untilReady,
  type WorkerState,
  withdraw,
  workerMetrics,
} from '@millrace/shared';
import { startHealthServer } from './health/health-server.js';
import { type PrepareProgress, prepareModel } from './models/prepare.js';
import { ServedModel } from './models/served-model.js';
import { ModelPipeline } from './pipeline/model-pipeline.js';
import { CurveStore } from './planning/curve-store.js';
import { PreprocessPool } from './tasks/preprocess-pool.js';

/** Announcements are renewed this often, in ms: with the locks. */
const ANNOUNCE_MS = 1000;

/**
 * The states of a worker, each entered only from those listed.
 * - starting: connecting, fetching and building models
 * - warming: loading sessions and running them once
 * - serving: every model is warm; the only state in which it is ready
 * - draining: no new jobs; what is held is finished
 * - stopped: nothing is held
 */
const ENTERED_FROM: Record<WorkerState, readonly WorkerState[]> = {
  starting: [],
  warming: ['starting'],
  serving: ['warming'],
  draining: ['starting', 'warming', 'serving'],
  stopped: ['draining'],
};

export interface RunningWorker {
  /** Id of this process in the registry. */
  id: string;
  /** Base URL of `/health/live`, `/health/ready` and `/metrics`. */
  healthUrl: string;
  models: ModelDescription[];
  /** Stops fetching, finishes what is held within `settings.graceMs`, gives the rest back, releases all. */
  drain(): Promise<void>;
  /** Resolves when this process can't go on (a session thread died): it has stopped fetching and must exit. */
  failed: Promise<Error>;
}

/** What a worker needs of its process while it fetches and builds models. */
export interface StartOptions {
  /** Read for the model sources' own variables: `HF_TOKEN` and the like. */
  env?: NodeJS.ProcessEnv;
  /** Told of every step of a fetch or build. */
  onProgress?: (progress: PrepareProgress) => void;
  /** Aborts a fetch or build; what is fetched is kept. */
  signal?: AbortSignal;
}

/**
 * Starts a worker and resolves when every model of `settings.models` is warm and served.
 * @throws StartupError when Redis, a model or the health port is not to be had; the signal's reason.
 */
export async function startWorker(
  settings: Settings,
  logger: Logger,
  options: StartOptions = {},
): Promise<RunningWorker> {
  const releasers = new Releasers();
  try {
    return await start(settings, logger, options, releasers);
  } catch (error) {
    await releasers.release().catch(() => undefined);
    throw error;
  }
}

async function start(
  settings: Settings,
  logger: Logger,
  { env = {}, ...hooks }: StartOptions,
  releasers: Releasers,
): Promise<RunningWorker> {
  const id = randomUUID();
  let state: WorkerState = 'starting';
  const enter = (next: WorkerState): void => {
    if (!ENTERED_FROM[next].includes(state)) throw new Error(`a worker can't go from ${state} to ${next}`);
    state = next;
    logger.info({ state }, 'state');
  };
  const metrics = workerMetrics();

  const pipelines: ModelPipeline[] = [];
  const ready = (): boolean => state === 'serving' && !pipelines.some((pipeline) => pipeline.failing);
  const at = { host: settings.workerHost, port: settings.workerPort };
  const health = await startHealthServer(at, () => state, ready, metrics);
  releasers.push(() => health.close());

  const redis = connectRedis(settings.redisUrl, 'worker', `worker-${id}`);
  releasers.push(() => redis.disconnect());
  const subscriber = connectRedis(settings.redisUrl, 'subscriber', `worker-${id}-control`);
  releasers.push(() => subscriber.disconnect());
  await Promise.all([untilReady(redis), untilReady(subscriber)]);
  for (const watch of [
    new LinkWatch(redis, (ms) => metrics.redisSeconds.observe(ms / 1000)),
    new LinkWatch(subscriber),
  ]) {
    watch.start();
    releasers.push(() => watch.stop());
  }
  const clock = new RedisClock();
  await clock.start(redis);
  releasers.push(() => clock.stop());

  const prepared = [];
  for (const name of settings.models) {
    const { modelsDir, cacheDir } = settings;
    prepared.push(await prepareModel({ modelsDir, cacheDir, name, env, ...hooks }));
  }

  enter('warming');
  const preprocess = new PreprocessPool(settings.preprocessThreads);
  releasers.push(() => preprocess.close());
  const context = { workerId: id, settings, redis, subscriber, clock, metrics, logger };
  const curves = new CurveStore(settings.dataDir, logger);
  const deaths: Promise<Error>[] = [];
  for (const model of prepared) {
    const served = await ServedModel.load(model, settings, preprocess, curves, logger);
    deaths.push(served.sessions.died);
    const pipeline = new ModelPipeline(served, context);
    pipelines.push(pipeline);
  }
  const models = () => pipelines.map((pipeline) => pipeline.description);
  const startedAt = clock.now();
  const renew = () =>
    announce(
      redis,
      {
        id,
        host: hostname(),
        pid,
        state,
        contractVersions: [CONTRACT_VERSION],
        startedAt,
        models: models(),
      },
      clock.now(),
    );

  enter('serving');
  await renew();
  const announcing = setInterval(() => {
    // While Redis is away the announcement expires by itself.
    renew().catch(() => undefined);
  }, ANNOUNCE_MS);
  releasers.push(async () => {
    clearInterval(announcing);
    await withdraw(redis, id);
  });
  releasers.push(async () => {
    await Promise.all(pipelines.map((pipeline) => pipeline.drain(settings.graceMs)));
  });
  for (const pipeline of pipelines) await pipeline.start();

  const drain = async (): Promise<void> => {
    if (state === 'draining' || state === 'stopped') return releasers.release();
    enter('draining');
    await renew().catch(() => undefined);
    await releasers.release();
    enter('stopped');
  };
  const failed = Promise.race(deaths).then(async (error) => {
    // Never healthy and useless: not ready from now on; its process exits and its jobs run elsewhere.
    logger.fatal({ err: error }, 'a session thread died');
    if (state === 'serving') enter('draining');
    await Promise.all(pipelines.map((pipeline) => pipeline.giveUp().catch(() => undefined)));
    return error;
  });
  return { id, healthUrl: health.url, models: models(), drain, failed };
}
