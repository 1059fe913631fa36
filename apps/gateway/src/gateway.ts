import { randomUUID } from 'node:crypto';
import {
  connectRedis,
  gatewayMetrics,
  LinkWatch,
  type Logger,
  LoopWatch,
  MillraceError,
  RedisClock,
  Releasers,
  readKeyEntries,
  type Settings,
  untilReady,
} from '@millrace/shared';
import { Admission } from './admission/admission.js';
import { ApiKeys } from './admission/api-keys.js';
import { RedisMemory } from './admission/redis-memory.js';
import { Batches } from './batches/batches.js';
import { Callbacks } from './callbacks/callbacks.js';
import { queueBoard } from './dashboard/board.js';
import { JobActions } from './dashboard/job-actions.js';
import { DASHBOARD_PATH } from './dashboard/pages.js';
import { requestsRouter } from './dashboard/requests/router.js';
import { dashboardRouter } from './dashboard/router.js';
import { Files } from './files/files.js';
import { authenticate, createApp } from './http/app.js';
import { ArrivingBodies } from './http/arriving-bodies.js';
import { BodyBytes } from './http/body.js';
import { Compression } from './http/compression.js';
import { limitConnections, refuseInHttp } from './http/connection-limit.js';
import { GatewayState, gatewayFaults, readinessCheck } from './http/health.js';
import { metricsRoute } from './http/metrics-route.js';
import { drainServer, isLoopback, listen, portOf, requireSafeBind } from './http/server.js';
import { listenOnSocket } from './http/unix-socket.js';
import { UnreadAnswers } from './http/unread-answers.js';
import { answerUnreadable } from './http/unreadable.js';
import { Idempotency } from './idempotency/idempotency.js';
import { IdempotencyRecords } from './idempotency/records.js';
import { Canceller } from './inference/canceller.js';
import { inference } from './inference/infer.js';
import { JobBatcher } from './inference/job-batcher.js';
import { JobProducer } from './inference/job-producer.js';
import { ModelDirectory } from './inference/model-directory.js';
import { StatisticsBook } from './inference/model-statistics.js';
import { QueueLoad } from './inference/queue-load.js';
import { Recovery } from './inference/recovery.js';
import { ReplyChannel } from './inference/reply-channel.js';
import { ReplyStore } from './inference/reply-store.js';
import { ReplyWaiter } from './inference/reply-waiter.js';
import type { JobRecord } from './jobs/job-record.js';
import type { JobStatus } from './jobs/job-status.js';
import { Jobs } from './jobs/jobs.js';
import { documentation } from './openapi/documentation.js';
import { answeringOnce } from './protocols/answer-once.js';
import { answering } from './protocols/answering.js';
import { lineReader } from './protocols/batches/read-line.js';
import { doorOf } from './protocols/door-of.js';
import type { DoorParts } from './protocols/door-parts.js';
import { protocolDoors } from './protocols/doors.js';
import { openGrpc } from './protocols/grpc/server.js';
import { EventStreams } from './protocols/jobs/events.js';
import { jobBody } from './protocols/jobs/render.js';
import { nativeErrors } from './protocols/native/problem.js';
import { healthRouter } from './protocols/open-inference/health.js';
import { OpenStreams } from './protocols/open-streams.js';
import { asksToBeKept } from './protocols/preferences.js';
import { Writers } from './protocols/writers.js';

/** A running gateway. */
export interface Gateway {
  /** Names its reply channel; new with every start. */
  readonly id: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** The unix socket that it serves at too, or empty. */
  readonly socketPath: string;
  /** Where gRPC is served, as HOST:PORT; absent where it is off. */
  readonly grpc?: { address: string; port: number };
  /** Drains: waiting clients get their answers within `graceMs`, then everything is released. */
  close(): Promise<void>;
}

/**
 * Starts a gateway; it serves when this resolves.
 * @throws StartupError for a setting it can't run with, Redis not answering, or an address it can't listen on.
 */
export async function startGateway(settings: Settings, logger: Logger): Promise<Gateway> {
  requireSafeBind(settings);
  const keys = new ApiKeys(readKeyEntries(settings.apiKeys));
  const releasers = new Releasers();
  try {
    return await start(settings, keys, logger, releasers);
  } catch (error) {
    await releasers.release();
    throw error;
  }
}

async function start(
  settings: Settings,
  keys: ApiKeys,
  logger: Logger,
  releasers: Releasers,
): Promise<Gateway> {
  const id = randomUUID();
  const metrics = gatewayMetrics();
  const state = new GatewayState();
  const redis = connectRedis(settings.redisUrl, 'producer', 'gateway');
  releasers.push(() => redis.disconnect());
  const subscriber = connectRedis(settings.redisUrl, 'subscriber', 'gateway-replies');
  releasers.push(() => subscriber.disconnect());
  await Promise.all([untilReady(redis), untilReady(subscriber)]);

  const link = new LinkWatch(redis, (ms) => metrics.redisSeconds.observe(ms / 1000));
  const repliesLink = new LinkWatch(subscriber);
  for (const watch of [link, repliesLink]) {
    watch.start();
    releasers.push(() => watch.stop());
  }
  const loop = new LoopWatch((ms) => metrics.loopSeconds.set(ms / 1000));
  loop.start();
  releasers.push(() => loop.stop());
  const clock = new RedisClock();
  await clock.start(redis);
  releasers.push(() => clock.stop());
  const directory = new ModelDirectory(redis, clock, settings.models, metrics, logger);
  await directory.start();
  releasers.push(() => directory.stop());

  const producer = new JobProducer(redis, link, clock, settings, logger);
  releasers.push(() => producer.close());
  const store = new ReplyStore(redis, logger);
  releasers.push(() => store.close());
  const waiter = new ReplyWaiter(store, metrics, logger);
  releasers.push(() => waiter.stop());
  const replies = new ReplyChannel(subscriber, repliesLink, id, waiter, logger);
  await replies.start();
  const recovery = new Recovery(redis, producer, waiter, metrics, logger);
  recovery.start();
  releasers.push(() => recovery.stop());

  const load = new QueueLoad(producer, metrics, logger);
  const memory = new RedisMemory(redis, logger);
  await memory.start();
  releasers.push(() => memory.stop());
  const admission = new Admission({
    load,
    directory,
    memory,
    clock,
    limits: settings,
    waitingBytes: () => waiter.waitingBytes,
  });
  const canceller = new Canceller(redis, producer, clock, logger);
  const statistics = new StatisticsBook();
  const batcher = new JobBatcher(producer, load, settings.maxJobItems);
  const infer = inference({
    gatewayId: id,
    maxJobItems: settings.maxJobItems,
    clock,
    admission,
    waiter,
    batcher,
    canceller,
    metrics,
    statistics,
  });

  const records = new IdempotencyRecords(redis, link, settings.idempotencyKeepMs);
  const idempotency = new Idempotency(records, clock, metrics, logger);
  releasers.push(() => idempotency.stop());
  const jobs = new Jobs({ redis, subscriber, clock, admission, producer, batcher, store, settings, logger });
  await jobs.start();
  releasers.push(() => jobs.stop());
  if (settings.callbackSecret !== '') {
    const fetching = connectRedis(settings.redisUrl, 'worker', 'gateway-callbacks');
    releasers.push(() => fetching.disconnect());
    const bodyOf = (record: JobRecord, status: JobStatus): object => jobBody(record, status);
    const callbacks = new Callbacks({ redis, fetching, settings, clock, jobs, bodyOf, metrics, logger });
    callbacks.start();
    releasers.push(() => callbacks.stop());
  }
  const files = new Files({ redis, clock, settings, logger });
  files.start();
  releasers.push(() => files.close());
  const writers = new Writers();
  const { durable } = jobs;
  const answerOnce = answeringOnce({ infer, durable, writers, idempotency, clock });
  const events = new EventStreams(jobs.watch);

  const bodies = new BodyBytes(settings.maxQueuedBytes);
  const faults = gatewayFaults(state, producer, directory, replies, loop);
  const streams = new OpenStreams();
  const parts: DoorParts = {
    clock,
    metrics,
    logger,
    state,
    directory,
    bodies,
    answer: answering(answerOnce),
    infer,
    streams,
    statistics,
    settings,
    faults,
    // Who may not ask for a job must not be given one.
    keyed: authenticate(keys, (headers) => (asksToBeKept(headers) ? ['infer', 'jobs'] : ['infer'])),
  };
  const fetchingBatches = connectRedis(settings.redisUrl, 'worker', 'gateway-batches');
  releasers.push(() => fetchingBatches.disconnect());
  const batches = new Batches({
    redis,
    fetching: fetchingBatches,
    files,
    infer,
    readLine: lineReader({ directory, settings }),
    jobItems: (model) => admission.bulkJobItems(model),
    clock,
    metrics,
    logger,
    settings,
  });
  batches.start();
  releasers.push(() => batches.stop());
  const readiness = readinessCheck(faults, directory);
  const kept = { clock, keyed: authenticate(keys, () => ['jobs']), isReady: () => producer.ready };
  const doors = protocolDoors(
    parts,
    {
      ...jobs,
      ...kept,
      writers,
      events,
      predictedWaitMs: (record, ahead) => admission.predictedWaitMs(record.queue, record, ahead),
    },
    { ...kept, ...settings, files },
    { ...kept, batches, bodies, settings, keyedToInfer: authenticate(keys, () => ['infer']) },
  );
  const metricsOpen = isLoopback(settings.host);
  const unreadAnswers = new UnreadAnswers(settings.maxUnreadBytes, metrics);
  const app = createApp({
    clock,
    logger,
    metrics,
    state,
    sending: {
      compression: new Compression(settings.compressFromBytes),
      unread: unreadAnswers,
    },
    corsOrigins: settings.corsOrigins,
    keys,
    doorOf,
    health: healthRouter(clock, readiness),
    documentation: documentation(clock, doors, { keyed: keys.required, metricsOpen }),
    dashboard: {
      path: DASHBOARD_PATH,
      router: dashboardRouter(clock, settings, keys, {
        board: queueBoard(directory, producer, {
          admin: settings.dashboardAdmin,
          callbacks: settings.callbackSecret !== '',
          actions: new JobActions({ ...jobs, redis, clock, gatewayId: id }),
        }),
        requests: (guard, show) => {
          const admin = settings.dashboardAdmin;
          return requestsRouter({ ...jobs, admin, redis, clock, directory, producer, store }, guard, show);
        },
      }),
    },
    metricsRoute: metricsRoute(metrics, directory, load, clock),
    metricsOpen,
    doors: doors.map(({ router }) => router),
  });
  // What could not be read as a request took no door.
  const arriving = new ArrivingBodies(settings.requestTimeoutMs, nativeErrors);
  releasers.push(() => arriving.stop());
  const server = await listen(app, nativeErrors, settings, arriving);
  // A start that fails from here on must not leave it listening.
  releasers.push(() => {
    server.close();
  });
  answerUnreadable(server, nativeErrors);
  limitConnections(server, settings.maxConnections, metrics, refuseInHttp(nativeErrors));
  releasers.push(() => server.closeAllConnections());
  const { socketPath, socketMode } = settings;
  const beside = socketPath ? await listenOnSocket(server, socketPath, socketMode) : undefined;
  releasers.push(() => {
    beside?.close();
  });
  const port = portOf(server);
  const grpc = await openGrpc({
    clock,
    logger,
    metrics,
    state,
    keys,
    bodies,
    unreadAnswers,
    directory,
    statistics,
    answerOnce,
    readiness,
    settings,
  });
  if (grpc) releasers.push(() => grpc.close());
  logger.info({ id, host: settings.host, port, grpcPort: grpc?.port }, 'gateway serves');

  const giveUp = (): void => {
    const error = new MillraceError('shutting_down', undefined, { retryAfterSeconds: 1 });
    waiter.failAll(error);
    idempotency.failAll(error);
    arriving.refuseAll(error);
  };
  const close = async (): Promise<void> => {
    state.drain();
    events.close();
    streams.drain();
    durable.drain();
    await Promise.all([
      drainServer(server, { state, beside, graceMs: settings.graceMs, giveUp }),
      batches.stop(),
      grpc?.drain(settings.graceMs),
    ]);
    await releasers.release();
    logger.info({ id }, 'gateway closed');
  };
  let closed: Promise<void> | undefined;
  return {
    id,
    host: settings.host,
    port,
    socketPath,
    url: `http://${addressOf(settings.host, port)}`,
    ...(grpc ? { grpc: { address: addressOf(settings.host, grpc.port), port: grpc.port } } : {}),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** An address a person can paste: a wildcard address is reached through loopback. */
function addressOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
