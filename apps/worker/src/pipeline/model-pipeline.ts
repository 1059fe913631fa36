import {
  type Logger,
  type ModelDescription,
  queueName,
  type RedisClock,
  type Settings,
  type WorkerMetrics,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { Aging } from '../intake/aging.js';
import { Arrivals } from '../intake/arrivals.js';
import { Cancellations } from '../intake/cancellations.js';
import { type FetchedJob, JobConsumer } from '../intake/job-consumer.js';
import { requestIdsOf } from '../intake/unread-job.js';
import type { ServedModel } from '../models/served-model.js';
import { ReplyPublisher } from '../replies/reply-publisher.js';
import { IdleClock } from '../session/idle-clock.js';
import { RunWatch } from '../session/run-watch.js';
import type { SessionClient } from '../session/session-client.js';
import type { AloneGate } from '../stalls/alone-gate.js';
import { RunMarkers } from '../stalls/markers.js';
import { Dispatcher } from './dispatcher.js';
import { IntakeLoop } from './intake-loop.js';
import { ItemPool } from './item-pool.js';
import { Runner } from './runner.js';
import { Settler } from './settler.js';
import { Throughput } from './throughput.js';

/** `prefetchMs` is so many times what is held ahead where the queue has no more. */
const MOST_OF_LEAST_AHEAD = 12;
/** A simulated or empty run may seem to take no time. */
const SHORTEST_ITEM_MS = 0.001;

/** Before a worker gives up, what its other sessions run has this long to come to its end, in ms. */
const LAST_RUNS_MS = 1000;
const POLL_MS = 10;
/** Giving back takes a round trip; longer than this, in ms, and Redis is away. */
const GIVE_BACK_MS = 2000;

/** Why a pipeline can't go on. */
export interface PipelineFailure {
  error: Error;
  /** The session whose run won't end: only SIGKILL ends this process then. */
  hung: SessionClient | undefined;
}

/** What every pipeline of a worker process shares. */
export interface WorkerContext {
  workerId: string;
  settings: Settings;
  redis: Redis;
  subscriber: Redis;
  clock: RedisClock;
  gate: AloneGate;
  metrics: WorkerMetrics;
  logger: Logger;
}

/** The way of one model's jobs through a worker: intake -> preprocess -> pool -> sessions -> replies. */
export class ModelPipeline {
  readonly #description: ModelDescription;
  readonly #model: ServedModel;
  readonly #context: WorkerContext;
  readonly #consumer: JobConsumer;
  readonly #cancellations: Cancellations;
  readonly #dispatcher: Dispatcher;
  readonly #intake: IntakeLoop;
  readonly #aging: Aging;
  readonly #pool: ItemPool;
  readonly #throughput = new Throughput();
  readonly #runner: Runner;
  readonly #watch: RunWatch;
  /** Resolves when a session thread died or won't come back from its run. */
  readonly failed: Promise<PipelineFailure>;

  constructor(model: ServedModel, context: WorkerContext) {
    this.#model = model;
    this.#context = context;
    this.#description = model.task.description;
    const { name, version } = this.#description;
    const { redis, clock, gate, metrics, settings, workerId } = context;
    const queue = queueName(name, version);
    const logger = context.logger.child({ model: name, version });
    this.#pool = new ItemPool((size) => model.curve.itemMs(size));
    this.#consumer = new JobConsumer(queue, redis, {
      onLocksLost: (count) => metrics.locksLost.inc({ model: name }, count),
      onError: (error) => logger.warn({ err: error }, 'the queue reports an error'),
    });
    this.#cancellations = new Cancellations(queue, redis);
    const markers = new RunMarkers(redis, clock, queue, workerId);
    const settler = new Settler({
      model: this.#description,
      queue,
      worker: workerId,
      redis,
      clock,
      consumer: this.#consumer,
      publisher: new ReplyPublisher(redis),
      metrics,
      logger,
    });
    const shared = {
      task: model.task,
      pool: this.#pool,
      settler,
      markers,
      cancellations: this.#cancellations,
      curve: model.curve,
      arrivals: new Arrivals(),
      clock,
      metrics,
      logger,
    };
    const { maxRunMs, prefetchMs } = settings;
    const leastAheadMs = prefetchMs / MOST_OF_LEAST_AHEAD;
    this.#runner = new Runner({
      ...shared,
      model: name,
      sessions: model.sessions,
      gate,
      maxRunMs,
      throughput: this.#throughput,
    });
    this.#dispatcher = new Dispatcher({
      ...shared,
      model: name,
      sessions: model.sessions,
      runner: this.#runner,
      gate,
      idleClock: new IdleClock(name, model.sessions, metrics),
      batching: model.manifest.batching,
      slotMs: leastAheadMs / 2,
      bulkRunMs: settings.bulkRunMs,
    });
    this.#intake = new IntakeLoop({
      ...shared,
      queue,
      model: this.#description,
      sessions: model.sessions.clients.length,
      prefetch: model.manifest.batching.prefetch,
      prefetchMs,
      leastAheadMs,
      consumer: this.#consumer,
      dispatcher: this.#dispatcher,
      redis,
    });
    this.#aging = new Aging({
      consumer: this.#consumer,
      clock,
      agingMs: settings.agingMs,
      jobsPerSecond: () => this.#throughput.lately / this.#intake.itemsPerJob,
      logger,
    });
    let overran: (failure: PipelineFailure) => void = () => undefined;
    this.#watch = new RunWatch(model.sessions.clients, maxRunMs, (hung, ms) => {
      overran({ error: new Error(`a run has not ended after ${Math.round(ms)} ms`), hung });
    });
    this.failed = new Promise((resolve) => {
      overran = resolve;
      void model.sessions.died.then((error) => resolve({ error, hung: undefined }));
    });
  }

  /** As the registry shows it: with what runs take now. */
  get description(): ModelDescription {
    const { curve, task } = this.#model;
    const sessions = this.#model.sessions.clients.length;
    const { sampleSizes: sizes } = task;
    const typical = sizes[Math.floor(sizes.length / 2)] ?? 1;
    const cost = {
      ...curve.terms,
      correction: curve.correction,
      sessions,
      capacity: (sessions * 1000) / Math.max(SHORTEST_ITEM_MS, curve.msPerItem(typical)),
      answered: this.#throughput.perSecond(),
    };
    return { ...this.#description, cost };
  }

  /** Whether it has been unable to fetch jobs for a while. */
  get failing(): boolean {
    return this.#intake.failing;
  }

  async start(): Promise<void> {
    await this.#cancellations.start(
      this.#context.subscriber,
      (requestId) => this.#dispatcher.cancel(requestId),
      () => this.#consumer.heldJobs.flatMap(({ job }) => requestIdsOf(job.data)),
    );
    await this.#consumer.start();
    this.#intake.start();
    this.#aging.start();
  }

  /**
   * Finishes what is held, for at most `graceMs`; the rest is given back to the queue.
   * @returns false when a session is still inside a run then: only SIGKILL ends this process.
   */
  async drain(graceMs: number): Promise<boolean> {
    const deadline = performance.now() + graceMs;
    await Promise.race([this.#finish(), sleep(graceMs)]);
    this.#dispatcher.stop();
    // A run whose jobs were let go, because Redis took no reply, is waited for by nobody.
    await this.#untilIdle(deadline - performance.now());
    // While Redis is away nothing can be given back: what is held is found stalled once it is there again.
    await Promise.race([this.#runner.acquit().then(() => this.#giveBack()), sleep(GIVE_BACK_MS)]);
    this.#watch.stop();
    this.#cancellations.stop();
    await this.#consumer.close();
    if (this.#model.sessions.busy > 0) return false;
    await this.#model.close();
    return true;
  }

  /**
   * Stops fetching and gives everything back at once but what runs: that has a moment to end, and then goes
   * back too. What runs in a hung session stays unsettled: it is found stalled and runs alone elsewhere.
   */
  async giveUp(hung?: SessionClient): Promise<void> {
    this.#aging.stop();
    this.#dispatcher.stop();
    const stopped = this.#intake.stop();
    if (hung) await this.#runner.condemn(hung);
    const running = this.#runner.runningJobs;
    await this.#giveBack(running);
    await stopped;
    await this.#giveBack(running);
    for (let ms = 0; ms < LAST_RUNS_MS && this.#consumer.held > 0; ms += POLL_MS) {
      await sleep(POLL_MS);
    }
    await this.#runner.acquit();
    await this.#giveBack();
  }

  /** Waits until no session runs anything, for at most `ms`. */
  async #untilIdle(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (this.#model.sessions.busy > 0 && performance.now() < until) await sleep(POLL_MS);
  }

  async #finish(): Promise<void> {
    this.#aging.stop();
    await this.#intake.stop();
    this.#dispatcher.drain();
    await this.#consumer.untilNoneHeld();
  }

  async #giveBack(except?: ReadonlySet<FetchedJob>): Promise<void> {
    const left = this.#consumer.heldJobs.filter((job) => !except?.has(job));
    if (left.length === 0) return;
    await Promise.all(left.map((job) => this.#consumer.giveBack(job).catch(() => undefined)));
    await this.#consumer.wakeAnother().catch(() => undefined);
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
