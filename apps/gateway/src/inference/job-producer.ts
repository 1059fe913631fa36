import {
  BULL_PREFIX,
  CONTRACT_VERSION,
  type JobData,
  type LinkWatch,
  type Logger,
  MillraceError,
  PRIORITIES,
  type PriorityClass,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import { type JobsOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { writeValue } from './large-values.js';
import type { PlannedJob } from './parts.js';

/** How long a side payload outlives its part's deadline, in ms. */
const PAYLOAD_MARGIN_MS = 60_000;
/** Results are published elsewhere, so the event stream only serves the dashboard. */
const EVENTS_KEPT = 100;
const JOB_NAME = 'infer';
/** A Redis that refuses jobs (full, read-only) is told of at most this often, in ms. */
const REFUSAL_LOG_MS = 10_000;

export interface QueueCounts {
  waiting: Record<PriorityClass, number>;
  active: number;
}

/** The one place that speaks BullMQ on the gateway's side. */
export class JobProducer {
  readonly #redis: Redis;
  readonly #link: LinkWatch;
  readonly #clock: RedisClock;
  readonly #jobOptions: Pick<JobsOptions, 'attempts' | 'removeOnComplete' | 'removeOnFail'>;
  readonly #logger: Logger;
  readonly #queues = new Map<string, Queue>();
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis, link: LinkWatch, clock: RedisClock, settings: Settings, logger: Logger) {
    this.#redis = redis;
    this.#link = link;
    this.#clock = clock;
    this.#logger = logger;
    this.#jobOptions = {
      attempts: 1,
      removeOnComplete: { count: settings.keepCompletedJobs },
      removeOnFail: { count: settings.keepFailedJobs },
    };
  }

  /** Whether jobs can be added now. */
  get ready(): boolean {
    return this.#link.answering;
  }

  /**
   * Adds a job; when it resolves, the job is accepted. Adding a job id that is there already changes nothing.
   * @throws MillraceError `queue_unavailable` when Redis can't take it.
   */
  async add(queueName: string, job: PlannedJob): Promise<void> {
    // Asked first: a command queued behind a pipeline in flight would only fail once that one has.
    if (!this.ready) throw unavailable();
    try {
      await this.#add(queueName, job);
    } catch (cause) {
      this.#tell(cause);
      throw unavailable(cause);
    }
  }

  #tell(cause: unknown): void {
    if (!this.ready || performance.now() - this.#toldAt < REFUSAL_LOG_MS) return;
    this.#toldAt = performance.now();
    this.#logger.error({ err: cause }, 'Redis does not take jobs; requests are refused');
  }

  async #add(queueName: string, { jobId, parts }: PlannedJob): Promise<void> {
    const [first] = parts;
    if (!first) return;
    for (const { sidePayload, data } of parts) {
      if (!sidePayload) continue;
      const lifeMs = Math.max(0, data.deadlineAt - this.#clock.now()) + PAYLOAD_MARGIN_MS;
      await writeValue(this.#redis, sidePayload.key, sidePayload.pieces, Math.ceil(lifeMs));
    }
    const data: JobData = {
      v: CONTRACT_VERSION,
      model: first.model.name,
      version: first.model.version,
      parts: parts.map((part) => part.data),
    };
    await this.queue(queueName).add(JOB_NAME, data, {
      ...this.#jobOptions,
      jobId,
      priority: first.data.priority,
      ...this.#times(first.data.stamps.enqueued),
    });
  }

  /** When it was added and, for a job that must not run yet, how long it is held back. */
  #times(enqueuedAt: number): Pick<JobsOptions, 'timestamp' | 'delay'> {
    const now = this.#clock.now();
    const delay = Math.ceil(enqueuedAt - now);
    return delay > 0 ? { timestamp: Math.round(now), delay } : { timestamp: Math.round(enqueuedAt) };
  }

  /** Where jobs of one request stand; `position` counts the jobs before the first of them that waits. */
  async standing(
    queueName: string,
    jobIds: readonly string[],
  ): Promise<{ active: boolean; delayed: boolean; position: number | undefined }> {
    const queue = this.queue(queueName);
    const states = await Promise.all(jobIds.map((id) => queue.getJobState(id)));
    const waiting = jobIds.filter((_, i) => states[i] === 'prioritized' || states[i] === 'waiting');
    const ranks = await Promise.all(waiting.map((id) => this.#redis.zrank(queue.toKey('prioritized'), id)));
    // A stalled job waits in a list of its own, before all others.
    const positions = ranks.map((rank) => rank ?? 0);
    return {
      active: states.includes('active'),
      delayed: states.includes('delayed'),
      position: positions.length > 0 ? Math.min(...positions) : undefined,
    };
  }

  /** For each job, how many are fetched before it; undefined for one that is not among those that wait in turn. */
  async positions(queueName: string, jobIds: readonly string[]): Promise<(number | undefined)[]> {
    const key = this.queue(queueName).toKey('prioritized');
    const ranks = await Promise.all(jobIds.map((id) => this.#redis.zrank(key, id)));
    return ranks.map((rank) => rank ?? undefined);
  }

  /** Whether the time of all these jobs has not come. */
  async areDelayed(queueName: string, jobIds: readonly string[]): Promise<boolean> {
    const key = this.queue(queueName).toKey('delayed');
    const scores = await Promise.all(jobIds.map((id) => this.#redis.zscore(key, id)));
    return !scores.includes(null);
  }

  /** Removes a job that still waits. Says nothing of its state: BullMQ answers alike for an unknown id. */
  async remove(queueName: string, jobId: string): Promise<void> {
    await this.queue(queueName).remove(jobId, { removeChildren: false });
  }

  /** For each job id, whether Redis has the job, in any state. */
  async exist(queueName: string, jobIds: readonly string[]): Promise<boolean[]> {
    const queue = this.queue(queueName);
    const found = await Promise.all(jobIds.map((id) => this.#redis.exists(queue.toKey(id))));
    return found.map((count) => count === 1);
  }

  async counts(queueName: string): Promise<QueueCounts> {
    const queue = this.queue(queueName);
    const { interactive, normal, bulk } = PRIORITIES;
    const [waiting, counts] = await Promise.all([
      queue.getCountsPerPriority([interactive, normal, bulk]),
      queue.getJobCounts('wait', 'active'),
    ]);
    return {
      waiting: {
        // Stalled jobs wait in `wait`, before all others; these are in `prioritized`: each job has a priority.
        interactive: (waiting[interactive] ?? 0) + (counts.wait ?? 0),
        normal: waiting[normal] ?? 0,
        bulk: waiting[bulk] ?? 0,
      },
      active: counts.active ?? 0,
    };
  }

  /** When the oldest waiting job was enqueued, in epoch ms of Redis's clock, or undefined if none waits. */
  async oldestWaitingSince(queueName: string): Promise<number | undefined> {
    const queue = this.queue(queueName);
    const jobs = await queue.getJobs(['wait', 'prioritized'], 0, 0, true);
    let oldest: number | undefined;
    for (const job of jobs) {
      if (job && (oldest === undefined || job.timestamp < oldest)) oldest = job.timestamp;
    }
    return oldest;
  }

  /** The queue of a name, made on first use. */
  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new Queue(name, {
        connection: this.#redis,
        prefix: BULL_PREFIX,
        streams: { events: { maxLen: EVENTS_KEPT } },
        // Both are asked of Redis at construction; while it is away the queue would stay broken for ever.
        skipVersionCheck: true,
        skipWaitingForReady: true,
      });
      // The failing call reports the error; without a listener BullMQ would throw it a second time.
      queue.on('error', () => undefined);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.close()));
  }
}

function unavailable(cause?: unknown): MillraceError {
  return new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
}
