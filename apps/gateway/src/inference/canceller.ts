import { cancelKey, controlChannel, type Logger, type RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { JobProducer } from './job-producer.js';
import type { PendingRequest } from './pending-request.js';

/** How long a tombstone outlives its request's deadline, in ms: a worker may read its clock a little late. */
const TOMBSTONE_MARGIN_MS = 10_000;

/** Takes back the work of a request nobody waits for. */
export class Canceller {
  readonly #redis: Redis;
  readonly #producer: JobProducer;
  readonly #clock: RedisClock;
  readonly #logger: Logger;

  constructor(redis: Redis, producer: JobProducer, clock: RedisClock, logger: Logger) {
    this.#redis = redis;
    this.#producer = producer;
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * Leaves a tombstone and tells the workers, so that fetched items are dropped before they run, and removes
   * the jobs that still wait and hold nothing else. Never throws: with Redis away, the deadline in the job ends it.
   */
  async cancel(pending: PendingRequest, deadlineAt: number): Promise<void> {
    const { queue, requestId } = pending;
    const parts = pending.unanswered();
    // A job that carries others' work too stays; its worker drops what is cancelled.
    const own = parts.flatMap(({ job }) => (job && job.parts.length === 1 ? [job.jobId] : []));
    const lifeMs = Math.ceil(Math.max(0, deadlineAt - this.#clock.now()) + TOMBSTONE_MARGIN_MS);
    const payloads = parts.flatMap(({ sidePayload }) => (sidePayload ? [sidePayload.key] : []));
    try {
      await Promise.all([
        this.#redis.set(cancelKey(queue, requestId), '1', 'PX', lifeMs),
        this.#redis.publish(controlChannel(queue), requestId),
        ...own.map((id) => this.#producer.remove(queue, id)),
      ]);
      if (payloads.length > 0) await this.#redis.unlink(payloads);
    } catch (err) {
      this.#logger.debug({ err, requestId }, 'work could not be taken back');
    }
  }
}
