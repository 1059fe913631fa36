import {
  type Logger,
  type ModelDescription,
  queueName,
  type RedisClock,
  type Settings,
  type WorkerMetrics,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { Arrivals } from '../intake/arrivals.js';
import { Cancellations } from '../intake/cancellations.js';
import { JobConsumer } from '../intake/job-consumer.js';
import type { ServedModel } from '../models/served-model.js';
import { ReplyPublisher } from '../replies/reply-publisher.js';
import { IdleClock } from '../session/idle-clock.js';
import { RunMarkers } from '../stalls/markers.js';
import { Dispatcher } from './dispatcher.js';
import { IntakeLoop } from './intake-loop.js';
import { ItemPool } from './item-pool.js';
import { Settler } from './settler.js';
import { Throughput } from './throughput.js';

/** A simulated or empty run may seem to take no time. */
const SHORTEST_ITEM_MS = 0.001;

/** What every pipeline of a worker process shares. */
export interface WorkerContext {
  workerId: string;
  settings: Settings;
  redis: Redis;
  subscriber: Redis;
  clock: RedisClock;
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
  readonly #pool: ItemPool;
  readonly #throughput = new Throughput();

  constructor(model: ServedModel, context: WorkerContext) {
    this.#model = model;
    this.#context = context;
    this.#description = model.task.description;
    const { name, version } = this.#description;
    const { redis, clock, metrics, settings, workerId } = context;
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
    this.#dispatcher = new Dispatcher({
      ...shared,
      model: name,
      sessions: model.sessions,
      idleClock: new IdleClock(name, model.sessions, metrics),
      batching: model.manifest.batching,
      slotMs: settings.prefetchMs / 2,
      throughput: this.#throughput,
    });
    this.#intake = new IntakeLoop({
      ...shared,
      queue,
      model: this.#description,
      sessions: model.sessions.clients.length,
      prefetch: model.manifest.batching.prefetch,
      prefetchMs: settings.prefetchMs,
      consumer: this.#consumer,
      dispatcher: this.#dispatcher,
      redis,
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
    await this.#cancellations.start(this.#context.subscriber, () => this.#dispatcher.pump());
    await this.#consumer.start();
    this.#intake.start();
  }

  /** Finishes what is held, for at most `graceMs`; the rest is given back to the queue. */
  async drain(graceMs: number): Promise<void> {
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref());
    await Promise.race([this.#finish(), deadline]);
    await this.#giveBack();
    this.#cancellations.stop();
    await this.#consumer.close();
    await this.#model.close();
  }

  /** Stops fetching and gives everything back: this worker can't run it any more. */
  async giveUp(): Promise<void> {
    await this.#consumer.stopFetching();
    await this.#giveBack();
  }

  async #finish(): Promise<void> {
    await this.#intake.stop();
    this.#dispatcher.drain();
    await this.#consumer.untilNoneHeld();
  }

  async #giveBack(): Promise<void> {
    const left = this.#consumer.heldJobs;
    await Promise.all(left.map((job) => this.#consumer.giveBack(job).catch(() => undefined)));
  }
}
