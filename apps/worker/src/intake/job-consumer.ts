import { randomUUID } from 'node:crypto';
import { BULL_PREFIX } from '@millrace/shared';
import { type Job, type JobJson, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

/** Measured safe on two busy cores; work of a dead worker is back in 2.9 to 3.5 s. */
const LOCK_MS = 3000;
const RENEW_MS = 1000;
/** Blocking fetches end after this many seconds: returned jobs wake no blocked worker. */
const BLOCK_SECONDS = 1;
/** Concurrent fetches of the first round behind a head that did not have to wait. */
const FIRST_ROUND = 4;
const COMPLETE_TOGETHER_MS = 5;
/** BullMQ's score of a waiting job is its priority times this, and a counter. */
const PRIORITY_STEP = 2 ** 32;

export interface FetchedJob {
  job: Job;
  /** Lock token, fresh for each fetch: a reused one lets a stale holder complete another's run. */
  token: string;
  /** Times a worker lost this job. */
  stalled: number;
  /** BullMQ's reason to fail it unrun, if it has one. */
  deferredFailure: string | undefined;
}

/**
 * BullMQ throws when a job's data is no JSON, and then nobody holds the job that it made active. Another tool
 * may have written it; it is fetched as a job without data, and refused as one.
 */
class TolerantWorker extends Worker {
  /** Ends a blocking fetch that waits for jobs. One that has just found one goes on and brings it. */
  async stopWaiting(): Promise<void> {
    // Without its connection the wait fails, after which BullMQ would pause before it tries again.
    this.delay = () => Promise.resolve();
    await this.backend.disconnectBlocking(false);
  }

  protected override createJob(data: JobJson, jobId: string): Job {
    try {
      return super.createJob(data, jobId);
    } catch {
      return super.createJob({ ...data, data: 'null', opts: {} as JobJson['opts'] }, jobId);
    }
  }
}

/**
 * Takes jobs off one queue by hand (BullMQ's own processor loop knows no batches), and keeps the locks of
 * all jobs that are held, for nobody else would.
 */
export class JobConsumer {
  readonly #worker: TolerantWorker;
  readonly #redis: Redis;
  readonly #held = new Map<string, FetchedJob>();
  readonly #renewing: NodeJS.Timeout;
  readonly #onLocksLost: (count: number) => void;
  #completing: Promise<void> | undefined;
  #noneHeld: (() => void) | undefined;
  #head: Promise<FetchedJob | undefined> | undefined;
  /** The last fetch found nothing, so the next head will have to wait. */
  #drained = false;

  constructor(
    queue: string,
    redis: Redis,
    events: { onLocksLost(count: number): void; onError(error: Error): void },
  ) {
    this.#onLocksLost = events.onLocksLost;
    this.#redis = redis;
    this.#worker = new TolerantWorker(queue, null, {
      connection: redis,
      prefix: BULL_PREFIX,
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: RENEW_MS,
      // Our own count of deaths decides about giving up; BullMQ's would fail innocents.
      maxStalledCount: Number.POSITIVE_INFINITY,
      drainDelay: BLOCK_SECONDS,
    });
    this.#worker.on('error', events.onError);
    this.#renewing = setInterval(() => void this.#renew(), RENEW_MS);
  }

  async start(): Promise<void> {
    await this.#worker.waitUntilReady();
    await this.#worker.startStalledCheckTimer();
  }

  /** Whether the last fetch found nothing. */
  get drained(): boolean {
    return this.#drained;
  }

  get held(): number {
    return this.#held.size;
  }

  /**
   * At least one job if any is there within a second, at most `most`: a blocking fetch for the head, then
   * rounds of concurrent ones. Behind a head that had to be waited for, nothing more is looked for: a lone
   * request should not pay for fetches that find nothing.
   */
  async fetch(most: number): Promise<FetchedJob[]> {
    const waited = this.#drained;
    this.#head ??= this.#fetchOne(true);
    const head = await this.#head.finally(() => {
      this.#head = undefined;
    });
    if (!head) return [];
    const jobs = [head];
    if (waited) return jobs;
    for (let round = FIRST_ROUND; jobs.length < most; round *= 2) {
      const wanted = Math.min(round, most - jobs.length);
      const found = await Promise.allSettled(Array.from({ length: wanted }, () => this.#fetchOne(false)));
      const good = found.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
      jobs.push(...good);
      // What was fetched beside one that failed is held here, so it is handed on all the same.
      if (good.length < wanted) break;
    }
    return jobs;
  }

  async #fetchOne(block: boolean): Promise<FetchedJob | undefined> {
    const token = randomUUID();
    const job = await this.#worker.getNextJob(token, { block });
    this.#drained = !job;
    if (!job?.id) return undefined;
    const fetched = { job, token, stalled: job.stalledCounter ?? 0, deferredFailure: job.deferredFailure };
    this.#held.set(job.id, fetched);
    return fetched;
  }

  /**
   * Settles a job as completed. A lost lock is normal then: another worker settles it too. Its reply has
   * gone out, so nobody waits for this: completions of a few milliseconds share one write to Redis.
   */
  async complete({ job, token }: FetchedJob): Promise<void> {
    this.#completing ??= new Promise((resolve) => {
      setTimeout(() => {
        this.#completing = undefined;
        resolve();
      }, COMPLETE_TOGETHER_MS);
    });
    await this.#completing;
    await this.#settle(job, () => job.moveToCompleted(null, token, false));
  }

  /** Settles a job as failed, kept for the dashboard. */
  async fail({ job, token }: FetchedJob, reason: string): Promise<void> {
    const error = new Error(reason);
    // Where it was made says nothing; without a stack, the dashboard shows the reason.
    error.stack = '';
    await this.#settle(job, () => job.moveToFailed(error, token, false));
  }

  /** Gives an unstarted job back to the front of its class. */
  async giveBack({ job, token }: FetchedJob): Promise<void> {
    await this.#settle(job, () => job.moveToWait(token));
  }

  /** Wakes a worker that waits for jobs: giving one back doesn't. */
  async wakeAnother(): Promise<void> {
    await this.#redis.zadd(this.#worker.toKey('marker'), 0, '0');
  }

  /** How many jobs wait that go before those of a priority. */
  async waitingBefore(priority: number): Promise<number> {
    return this.#redis.zcount(this.#worker.toKey('prioritized'), '-inf', `(${priority * PRIORITY_STEP}`);
  }

  /** The jobs of one priority that wait longest, at most `most`: their ids and when they were added, epoch ms. */
  async waitingLongest(priority: number, most: number): Promise<{ id: string; addedAt: number }[]> {
    const from = priority * PRIORITY_STEP;
    const ids = await this.#redis.zrangebyscore(
      this.#worker.toKey('prioritized'),
      from,
      `(${from + PRIORITY_STEP}`,
      'LIMIT',
      0,
      most,
    );
    const times = await Promise.all(ids.map((id) => this.#redis.hget(this.#worker.toKey(id), 'timestamp')));
    return ids.map((id, i) => ({ id, addedAt: Number(times[i] ?? Number.NaN) }));
  }

  /** Puts a waiting job at the end of another priority's. One that waits no longer keeps its place. */
  async changePriority(id: string, priority: number): Promise<void> {
    await this.#worker.backend.changePriority(id, priority, false);
  }

  /** Stops renewing a job's lock without settling it: it is found stalled and run again. */
  abandon({ job }: FetchedJob): void {
    this.#release(job);
  }

  /** The jobs that are held now. */
  get heldJobs(): readonly FetchedJob[] {
    return [...this.#held.values()];
  }

  /** Resolves when no job is held. */
  untilNoneHeld(): Promise<void> {
    if (this.#held.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#noneHeld = resolve;
    });
  }

  #release(job: Job): void {
    this.#held.delete(job.id ?? '');
    if (this.#held.size === 0) this.#noneHeld?.();
  }

  async #settle(job: Job, move: () => Promise<unknown>): Promise<void> {
    try {
      await move();
    } catch (error) {
      if (!/lock|Missing key|not in the active state/i.test((error as Error).message)) throw error;
    } finally {
      this.#release(job);
    }
  }

  async #renew(): Promise<void> {
    if (this.#held.size === 0) return;
    const held = [...this.#held.values()];
    try {
      const lost = await this.#worker.extendJobLocks(
        held.map(({ job }) => job.id ?? ''),
        held.map(({ token }) => token),
        LOCK_MS,
      );
      // Settled meanwhile isn't lost.
      const missing = lost.filter((id) => this.#held.has(id)).length;
      if (missing > 0) this.#onLocksLost(missing);
    } catch {
      // Redis is away; the next second tries again.
    }
  }

  /** Ends fetching at once; jobs that are held stay so, and their locks are renewed until {@link close}. */
  async stopFetching(): Promise<void> {
    await this.#worker.pause(true);
    await this.#worker.stopWaiting();
  }

  async close(): Promise<void> {
    clearInterval(this.#renewing);
    await this.#worker.close(true);
  }
}
