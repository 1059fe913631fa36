import {
  type Logger,
  MillraceError,
  type ModelDescription,
  PRIORITIES,
  type RedisClock,
  replyGeneration,
  replyKey,
  type WorkerMetrics,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { Arrivals } from '../intake/arrivals.js';
import type { Cancellations } from '../intake/cancellations.js';
import type { HeldItem, HeldJob } from '../intake/held-job.js';
import type { FetchedJob, JobConsumer } from '../intake/job-consumer.js';
import { readJob } from '../intake/read-job.js';
import { isBulk, itemsOf, sidePayloadBytesOf } from '../intake/unread-job.js';
import type { CostCurve } from '../planning/cost-curve.js';
import type { RunMarkers } from '../stalls/markers.js';
import { prepareItems } from '../tasks/prepare-items.js';
import { isAnswered, isFault, type Task } from '../tasks/task.js';
import { runsNoModel } from '../tasks/text-operations.js';
import type { Dispatcher } from './dispatcher.js';
import type { ItemPool } from './item-pool.js';
import type { Settler } from './settler.js';

/** After an error of Redis, fetching is tried again after this long, in ms. */
const RETRY_MS = 100;
const FAILING_MS = 3000;
const TYPICAL_SIZE = 16;
const MEAN_WEIGHT = 0.05;
const MOST_JOBS = 128;
/** What is held ahead grows so with each fetch that brings all it asked for, and is the least again with the first that doesn't. */
const AHEAD_GROWTH = 1.5;
/** While inputs of so many bytes are held, no more is held than the least: they are in Redis as well. */
const MOST_AHEAD_BYTES = 32 * 1024 * 1024;
/**
 * While interactive work comes, no bulk work is fetched on top of so much that waits for a session, in predicted ms: enough
 * to fill up the groups of that work (5 made 13% fewer lines a second).
 */
const BULK_HELD_MS = 20;
/** How often other work is looked for then, in ms, if no run ends before. */
const LOOK_MS = 3;
/** Items that need no run of the model and wait to be answered: from so many on, nothing more is fetched. */
const MOST_RUNLESS = 256;
/** A job that could not be read this often, for reasons that are not its own, is given up. */
const MOST_STALLS = 3;

/**
 * Fetches jobs while there is room ahead of the sessions, reads and prepares their items, and puts them
 * into the pool. Preparing goes on while sessions run and while the batch window is open.
 */
export class IntakeLoop {
  #stopped = false;
  #loop: Promise<void> | undefined;
  #preparingMs = 0;
  #preparingBulkMs = 0;
  /** Running mean of what an item adds to a run, in ms: the guess for items not prepared yet. */
  #meanItemMs: number;
  #itemsPerJob = 1;
  /** What is held ahead of the sessions now, in predicted ms. */
  #wantedMs: number;
  #preparing = new Set<Promise<void>>();
  #runless: HeldItem[] = [];
  #answering: Promise<void> | undefined;
  #roomWaiter: (() => void) | undefined;
  #failingSince: number | undefined;

  constructor(
    private readonly parts: {
      queue: string;
      model: ModelDescription;
      task: Task;
      /** Sessions that run side by side. */
      sessions: number;
      /** Whether anything is fetched while a batch runs. */
      prefetch: boolean;
      /**
       * Most predicted ms ahead of the sessions. So much is held only where the queue has more: it would wait there
       * too, and the more there is to choose from, the less is padded (5% of 100 texts, 2% of 500).
       */
      prefetchMs: number;
      /** The same where the queue has no more: for other workers, and for what goes first. */
      leastAheadMs: number;
      consumer: JobConsumer;
      pool: ItemPool;
      dispatcher: Dispatcher;
      settler: Settler;
      markers: RunMarkers;
      cancellations: Cancellations;
      curve: CostCurve;
      arrivals: Arrivals;
      redis: Redis;
      clock: RedisClock;
      metrics: WorkerMetrics;
      logger: Logger;
    },
  ) {
    this.#wantedMs = parts.leastAheadMs;
    this.#meanItemMs = parts.curve.itemMs(TYPICAL_SIZE);
    parts.dispatcher.onProgress = () => this.#roomWaiter?.();
    parts.dispatcher.workComes = () => this.#preparing.size > 0 || !parts.consumer.drained;
  }

  /** Whether jobs could not be fetched for a while: then this worker is of no use. */
  get failing(): boolean {
    return this.#failingSince !== undefined && performance.now() - this.#failingSince > FAILING_MS;
  }

  /** Running mean of items in a fetched job. */
  get itemsPerJob(): number {
    return this.#itemsPerJob;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Ends fetching; resolves when everything that was fetched is in the pool. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#roomWaiter?.();
    await this.parts.consumer.stopFetching();
    await this.#loop;
    while (this.#preparing.size > 0) await Promise.all(this.#preparing);
    while (this.#answering) await this.#answering;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const most = await this.#untilRoom();
      if (this.#stopped) return;
      try {
        const jobs = await this.parts.consumer.fetch(most);
        this.#failingSince = undefined;
        const { prefetch, prefetchMs, leastAheadMs } = this.parts;
        const more = prefetch && jobs.length === most && this.#heldBytes < MOST_AHEAD_BYTES;
        this.#wantedMs = more ? Math.min(prefetchMs, this.#wantedMs * AHEAD_GROWTH) : leastAheadMs;
        this.parts.metrics.jobsHeld.set({ model: this.parts.model.name }, this.parts.consumer.held);
        if (jobs.length > 0) this.#accept(jobs);
      } catch (error) {
        if (this.#stopped) return;
        if (this.#failingSince === undefined)
          this.parts.logger.warn({ err: error }, 'jobs cannot be fetched');
        this.#failingSince ??= performance.now();
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Waits until there is room ahead of the sessions; how many jobs to look for then. */
  async #untilRoom(): Promise<number> {
    const { dispatcher, clock } = this.parts;
    for (;;) {
      if (this.#stopped) return 1;
      const apart = dispatcher.interactiveLately(clock.now()) && this.#bulkMs > 0;
      const most = apart ? await this.#roomBesideBulk() : this.#room(this.#wantedMs);
      if (most > 0 || this.#stopped) return most;
      await new Promise<void>((resolve) => {
        // Of what comes to Redis meanwhile nobody tells.
        const timer = apart ? setTimeout(resolve, LOOK_MS) : undefined;
        this.#roomWaiter = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#roomWaiter = undefined;
    }
  }

  /** Jobs to look for until so many predicted ms are ahead of the sessions. */
  #room(wantedMs: number): number {
    const { pool, prefetch, dispatcher } = this.parts;
    const roomMs = wantedMs - this.#aheadMs(pool.ms + this.#preparingMs);
    const nothingAhead = pool.count + this.#preparing.size === 0;
    const open = prefetch ? roomMs > 0 || nothingAhead : nothingAhead && !dispatcher.busy;
    return open && this.#runless.length < MOST_RUNLESS ? this.#jobsIn(roomMs) : 0;
  }

  /**
   * The same while interactive work comes and bulk work is held: that takes no room from other work, and what is held of
   * it stays little, since it would be between that and the sessions.
   */
  async #roomBesideBulk(): Promise<number> {
    const { pool, prefetch, leastAheadMs, consumer } = this.parts;
    const roomMs = leastAheadMs - this.#aheadMs(pool.ms + this.#preparingMs - this.#bulkMs);
    if (!prefetch || roomMs <= 0 || this.#runless.length >= MOST_RUNLESS) return this.#room(leastAheadMs);
    const stopped = new Promise<number>((resolve) => {
      this.#roomWaiter = () => resolve(0);
    });
    // A Redis that is away is met by the fetch; it must not hold up the end.
    const waiting = await Promise.race([consumer.waitingBefore(PRIORITIES.bulk).catch(() => 0), stopped]);
    if (waiting > 0) return Math.min(waiting, this.#jobsIn(roomMs));
    return this.#bulkMs <= BULK_HELD_MS ? 1 : 0;
  }

  get #heldBytes(): number {
    return this.parts.consumer.heldJobs.reduce((sum, job) => sum + sidePayloadBytesOf(job), 0);
  }

  /** Predicted ms of bulk work that is held and does not run. */
  get #bulkMs(): number {
    return this.parts.pool.bulkMs + this.#preparingBulkMs;
  }

  /** How long the sessions take for so much predicted work, in ms. */
  #aheadMs(ms: number): number {
    return (ms * this.parts.curve.correction) / this.parts.sessions;
  }

  #jobsIn(roomMs: number): number {
    const jobMs = this.#aheadMs(this.#meanItemMs * this.#itemsPerJob);
    return Math.min(MOST_JOBS, Math.max(1, Math.ceil(roomMs / jobMs)));
  }

  #accept(jobs: readonly FetchedJob[]): void {
    const items = jobs.reduce((sum, job) => sum + itemsOf(job), 0);
    this.#itemsPerJob += MEAN_WEIGHT * (items / jobs.length - this.#itemsPerJob);
    this.parts.arrivals.observe(items, this.parts.clock.now());
    const guess = items * this.#meanItemMs;
    const bulk = jobs.reduce((sum, job) => sum + (isBulk(job) ? itemsOf(job) : 0), 0) * this.#meanItemMs;
    this.#preparingMs += guess;
    this.#preparingBulkMs += bulk;
    const preparing = this.#prepare(jobs)
      .catch((error: Error) => {
        this.parts.logger.error({ err: error }, 'fetched jobs could not be prepared');
        for (const job of jobs) this.parts.consumer.abandon(job);
      })
      .finally(() => {
        this.#preparingMs -= guess;
        this.#preparingBulkMs -= bulk;
        this.#preparing.delete(preparing);
        this.#roomWaiter?.();
        this.parts.dispatcher.pump();
      });
    this.#preparing.add(preparing);
  }

  async #prepare(jobs: readonly FetchedJob[]): Promise<void> {
    const fetchedAt = this.parts.clock.now();
    const held = await Promise.all(jobs.map((job) => this.#read(job)));
    const items: HeldItem[] = [];
    for (const job of held) {
      if (!job) continue;
      for (const part of job.parts) {
        part.stamp('fetched', fetchedAt);
        if (part.data.priority <= PRIORITIES.interactive) this.parts.dispatcher.sawInteractive(fetchedAt);
        items.push(...part.items.filter((item) => this.#worthPreparing(item, fetchedAt)));
      }
    }
    this.#runless.push(...items.filter(({ raw }) => runsNoModel(raw.operation)));
    this.#answer();
    await this.#prepareItems(items.filter(({ raw }) => !runsNoModel(raw.operation)));
  }

  /** Answers what needs no run, unless that is going on already. */
  #answer(): void {
    if (this.#answering || this.#runless.length === 0) return;
    this.#answering = this.#answerRunless().finally(() => {
      this.#answering = undefined;
      // What came after the last one was answered.
      this.#answer();
    });
  }

  /** One after the other, so that what the sessions wait for gets its turn between them. */
  async #answerRunless(): Promise<void> {
    for (let item = this.#runless.shift(); item; item = this.#runless.shift()) {
      try {
        if (this.#worthPreparing(item, this.parts.clock.now())) await this.#prepareItems([item]);
      } catch (err) {
        this.parts.logger.error({ err }, 'an item could not be answered');
        this.parts.settler.abandon(item);
      }
      this.#roomWaiter?.();
    }
  }

  #worthPreparing(item: HeldItem, now: number): boolean {
    if (item.settled) return false;
    if (item.part.data.deadlineAt < now) this.parts.settler.settle(item, { status: 'expired' });
    else if (this.parts.cancellations.has(item.part.data.requestId)) {
      this.parts.settler.settle(item, { status: 'cancelled' });
    } else if (item.part.fault) this.parts.settler.settle(item, { status: 'failed', ...item.part.fault });
    else return true;
    return false;
  }

  async #prepareItems(items: readonly HeldItem[]): Promise<void> {
    if (items.length === 0) return;
    const results = await prepareItems(
      this.parts.task,
      items.map((item) => item.raw),
      (error) => this.parts.logger.error({ err: error }, 'items could not be prepared; trying one by one'),
    );
    const now = this.parts.clock.now();
    const ready: HeldItem[] = [];
    for (const [i, item] of items.entries()) {
      const result = results[i];
      item.part.stamp('preprocessed', now);
      if (!result || isFault(result)) {
        const { code, message } = result ?? {
          code: 'internal' as const,
          message: 'The item was not prepared.',
        };
        this.parts.settler.settle(item, { status: 'failed', code, message });
      } else if (isAnswered(result)) this.parts.settler.settle(item, { status: 'ok' }, result.outputs);
      else {
        item.prepared = result;
        this.#meanItemMs += MEAN_WEIGHT * (this.parts.curve.itemMs(result.size) - this.#meanItemMs);
        ready.push(item);
      }
    }
    this.parts.pool.add(ready);
  }

  /** A fetched job ready to prepare; undefined when it needed no run. */
  async #read(fetched: FetchedJob): Promise<HeldJob | undefined> {
    const { model, redis } = this.parts;
    try {
      if (fetched.deferredFailure) throw new MillraceError('internal', fetched.deferredFailure);
      const job = await readJob(fetched, model, redis, this.parts.clock.now());
      if (fetched.stalled > 0 && (await this.#takeOver(job))) return undefined;
      return job;
    } catch (error) {
      await this.#refuse(fetched, error as Error);
      return undefined;
    }
  }

  /**
   * A job that can't be read fails alone; those fetched with it go on. What was Redis's fault, by all looks,
   * is tried again after its lock ran out, but not for ever.
   */
  async #refuse(fetched: FetchedJob, error: Error): Promise<void> {
    if (!(error instanceof MillraceError) && fetched.stalled < MOST_STALLS) {
      this.parts.logger.warn({ job: fetched.job.id, err: error }, 'a job could not be read yet');
      this.parts.consumer.abandon(fetched);
      return;
    }
    const known =
      error instanceof MillraceError ? error : new MillraceError('internal', undefined, {}, { cause: error });
    this.parts.logger.warn({ job: fetched.job.id, code: known.code, err: error }, 'a job was refused');
    try {
      await this.parts.settler.refuse(fetched, { code: known.code, message: known.message });
    } catch (err) {
      this.parts.logger.error({ err, job: fetched.job.id }, 'a job could not even be refused');
      this.parts.consumer.abandon(fetched);
    }
  }

  /**
   * A job that another worker lost. @returns whether it is done with: every part has its stored reply.
   */
  async #takeOver(job: HeldJob): Promise<boolean> {
    const { queue, redis, consumer, settler, markers, cancellations, metrics, model } = this.parts;
    metrics.stalled.inc({ model: model.name });
    const keys = job.data.parts.map((part) => replyKey(queue, part.requestId, part.firstItem));
    // The reply before an administrator's retry is not this run's.
    const stored = await Promise.all(keys.map((key) => redis.getrangeBuffer(key, 0, 3)));
    for (const [i, part] of job.parts.entries()) {
      const generation = replyGeneration(stored[i]);
      if (generation !== undefined && generation >= part.data.generation) part.skip();
    }
    if (job.replied) {
      await consumer.complete(job.fetched);
      return true;
    }
    await cancellations.check(job.data.parts.map((part) => part.requestId));
    for (const part of job.parts) {
      for (const item of await markers.quarantined(part)) {
        metrics.quarantined.inc({ model: model.name });
        settler.settle(item, {
          status: 'failed',
          code: 'item_quarantined',
          message: 'Workers died while running this input. It will not be tried again.',
        });
      }
    }
    return false;
  }
}
