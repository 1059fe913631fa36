import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import {
  announce,
  CONTRACT_VERSION,
  connectRedis,
  LinkWatch,
  type Logger,
  LoopWatch,
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
import { ModelPipeline, type PipelineFailure } from './pipeline/model-pipeline.js';
import { CurveStore } from './planning/curve-store.js';
import { AloneGate } from './stalls/alone-gate.js';
import { PreprocessPool } from './tasks/preprocess-pool.js';

/** Announcements are renewed this often, in ms: with the locks. */
const ANNOUNCE_MS = 1000;
/** A worker that can't go on ends after this at the latest, in ms, whether or not it could give its work back. */
const GIVE_UP_MS = 5000;

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
  /**
   * Stops fetching, finishes what is held within `settings.graceMs`, gives the rest back, releases all.
   * @returns how it must end: by exit, or, while a thread is still inside a run, by SIGKILL.
   */
  drain(): Promise<'exit' | 'kill'>;
  /** Resolves when this process can't go on: it has stopped fetching and given back what it held. */
  failed: Promise<WorkerFailure>;
}

/** A part of the worker died or hangs. */
export interface WorkerFailure {
  error: Error;
  /** Whether a thread is inside a run that won't end: only SIGKILL ends this process. */
  hung: boolean;
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
  const loop = new LoopWatch((ms) => metrics.loopSeconds.set(ms / 1000));
  loop.start();
  releasers.push(() => loop.stop());
  const links: LinkWatch[] = [];
  const ready = (): boolean =>
    state === 'serving' &&
    !loop.lagging &&
    links.every((link) => link.answering) &&
    !pipelines.some((pipeline) => pipeline.failing);
  const at = { host: settings.workerHost, port: settings.workerPort };
  const health = await startHealthServer(at, () => state, ready, metrics);
  releasers.push(() => health.close());

  const redis = connectRedis(settings.redisUrl, 'worker', `worker-${id}`);
  releasers.push(() => redis.disconnect());
  const subscriber = connectRedis(settings.redisUrl, 'subscriber', `worker-${id}-control`);
  releasers.push(() => subscriber.disconnect());
  await Promise.all([untilReady(redis), untilReady(subscriber)]);
  links.push(
    new LinkWatch(redis, (ms) => metrics.redisSeconds.observe(ms / 1000)),
    new LinkWatch(subscriber),
  );
  for (const link of links) {
    link.start();
    releasers.push(() => link.stop());
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
  const preprocess = new PreprocessPool(settings.preprocessThreads, settings.maxRunMs);
  releasers.push(() => preprocess.close());
  const gate = new AloneGate();
  const context = { workerId: id, settings, redis, subscriber, clock, gate, metrics, logger };
  const curves = new CurveStore(settings.dataDir, logger);
  for (const model of prepared) {
    const served = await ServedModel.load(model, settings, preprocess, curves, logger);
    pipelines.push(new ModelPipeline(served, context));
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
        // One that drains takes no work: gateways must not count on it, but it is alive.
        models: state === 'serving' ? models() : [],
      },
      clock.now(),
    );

  enter('serving');
  // A Redis that is full or read-only takes it a little later, with the work that it takes then.
  await renew().catch((err: unknown) => logger.warn({ err }, 'Redis does not take the announcement yet'));
  const announcing = setInterval(() => {
    // While Redis is away the announcement expires by itself.
    renew().catch(() => undefined);
  }, ANNOUNCE_MS);
  releasers.push(async () => {
    clearInterval(announcing);
    // While Redis is away, or takes no writes, it expires by itself.
    if (links.every((link) => link.answering)) await withdraw(redis, id).catch(() => undefined);
  });
  let ended = true;
  releasers.push(async () => {
    const all = await Promise.all(pipelines.map((pipeline) => pipeline.drain(settings.graceMs)));
    ended = !all.includes(false);
  });
  for (const pipeline of pipelines) await pipeline.start();

  /** Not ready, and no worker to any gateway, from now on. */
  const leave = (): void => {
    if (state !== 'serving') return;
    enter('draining');
    // While Redis is away nobody could read it, and draining doesn't wait for that.
    renew().catch(() => undefined);
  };
  const drain = async (): Promise<'exit' | 'kill'> => {
    leave();
    await releasers.release();
    if (state === 'draining') enter('stopped');
    return ended ? 'exit' : 'kill';
  };
  const giveUp = async ({ error, hung }: PipelineFailure): Promise<WorkerFailure> => {
    logger.fatal({ err: error }, 'this worker cannot go on');
    leave();
    const givenUp = Promise.all(pipelines.map((pipeline) => pipeline.giveUp(hung)));
    const done = givenUp.then(async () => {
      if (!hung) return;
      // From now on it counts as dead, as it will be.
      clearInterval(announcing);
      await withdraw(redis, id);
    });
    const late = new Promise((resolve) => setTimeout(resolve, GIVE_UP_MS));
    await Promise.race([done.catch(() => undefined), late]);
    return { error, hung: hung !== undefined };
  };
  const preprocessFailed = preprocess.failed.then((error) => ({ error, hung: undefined }));
  const failed = Promise.race([...pipelines.map((pipeline) => pipeline.failed), preprocessFailed]).then(
    giveUp,
  );
  return { id, healthUrl: health.url, models: models(), drain, failed };
}
