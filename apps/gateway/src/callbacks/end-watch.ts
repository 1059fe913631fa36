import { CALLBACKS_AWAITED_KEY, type Logger, type RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { hasEnded } from '../jobs/durable.js';
import type { JobRecord } from '../jobs/job-record.js';
import type { JobRecords } from '../jobs/job-records.js';
import type { JobStatus, JobStatuses } from '../jobs/job-status.js';
import type { ReplyNotices } from '../jobs/reply-notices.js';
import type { Deliveries } from './deliveries.js';

/** Time between two looks at what is due, in ms. */
const LOOK_MS = 1000;
/** Requests that one look takes. */
const MOST = 100;
/** Who takes a request to look at it has this long, in ms; then another gateway does. */
const LEASE_MS = 30_000;
/** A request that has not ended is looked at again after a tenth of its age, within these bounds, in ms. */
const SOONEST_MS = 1000;
const LATEST_MS = 30_000;
/** Requests that this gateway listens for, so that their ends are told at once; the others are found by looking. */
const MOST_LISTENED = 10_000;

/** Takes what is due out of the way of other gateways. KEYS: awaited. ARGV: now, most, until. */
const TAKE = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[3], id) end
return due`;

export interface EndWatchParts {
  redis: Redis;
  clock: RedisClock;
  records: JobRecords;
  statuses: JobStatuses;
  notices: ReplyNotices;
  deliveries: Deliveries;
  /** What is said of a request that has ended. */
  bodyOf(record: JobRecord, status: JobStatus): object;
  logger: Logger;
}

/** Finds the ends of requests that somebody is to be told of: by listening, and by looking for what was missed. */
export class EndWatch {
  readonly #parts: EndWatchParts;
  readonly #listened = new Map<string, () => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: EndWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.look().catch((err: Error) => this.#parts.logger.debug({ err }, 'callbacks were not looked for'));
    }, LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const stop of this.#listened.values()) stop();
    this.#listened.clear();
  }

  /** Notes that a request's end is to be told: before it is enqueued, so that no end comes before. */
  async await({ id }: JobRecord): Promise<void> {
    const { clock, notices, redis } = this.#parts;
    await redis.zadd(CALLBACKS_AWAITED_KEY, clock.now() + SOONEST_MS, id);
    this.#unlisten(id);
    if (this.#listened.size >= MOST_LISTENED) return;
    const stop = notices.listen(id, () => {
      this.#check(id).catch((err: Error) => this.#parts.logger.debug({ err, id }, 'an end was not told yet'));
    });
    this.#listened.set(id, stop);
  }

  /** A request that was not accepted after all. */
  async forget(id: string): Promise<void> {
    this.#unlisten(id);
    await this.#parts.redis.zrem(CALLBACKS_AWAITED_KEY, id);
  }

  /** Looks at the requests that are due now. */
  async look(): Promise<void> {
    const { clock, redis } = this.#parts;
    const now = clock.now();
    const due = (await redis.eval(TAKE, 1, CALLBACKS_AWAITED_KEY, now, MOST, now + LEASE_MS)) as string[];
    for (const id of due) await this.#check(id);
  }

  async #check(id: string): Promise<void> {
    const { bodyOf, clock, deliveries, records, redis, statuses } = this.#parts;
    const record = await records.find(id);
    if (!record?.callback) return await this.forget(id);
    const status = await statuses.of(record);
    if (!hasEnded(status)) {
      const ageMs = clock.now() - record.receivedAt;
      const nextMs = Math.min(LATEST_MS, Math.max(SOONEST_MS, ageMs / 10));
      await redis.zadd(CALLBACKS_AWAITED_KEY, 'XX', clock.now() + nextMs, id);
      return;
    }
    const body = JSON.stringify({
      type: `job.${status.state}`,
      timestamp: new Date(clock.now()).toISOString(),
      data: bodyOf(record, status),
    });
    await deliveries.add({ url: record.callback, id: deliveryId(record), body });
    await this.forget(id);
  }

  #unlisten(id: string): void {
    this.#listened.get(id)?.();
    this.#listened.delete(id);
  }
}

/** A job that was sent again by an administrator has another end, which is no repeat of the first. */
function deliveryId({ id, parts }: JobRecord): string {
  const generation = Math.max(...parts.map((part) => part.generation ?? 0));
  return generation === 0 ? id : `${id}.${generation}`;
}
