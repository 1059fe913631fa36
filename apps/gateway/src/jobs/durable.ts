import {
  ANY_GATEWAY,
  cancelKey,
  controlChannel,
  elementBytes,
  elementsPerItem,
  jobId,
  MillraceError,
  type ModelDescription,
  payloadKey,
  queueName,
  RETRY_KEEP_MS,
  type RedisClock,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { Admission } from '../admission/admission.js';
import type { ClientGone } from '../inference/client-gone.js';
import type { JobBatcher } from '../inference/job-batcher.js';
import type { JobProducer } from '../inference/job-producer.js';
import { type PlannedPart, planParts } from '../inference/parts.js';
import type { InferRequest, InferResult } from '../inference/request.js';
import type { JobRecord } from './job-record.js';
import type { JobRecords } from './job-records.js';
import type { JobStatus, JobStatuses } from './job-status.js';
import type { JobWatch } from './job-watch.js';
import type { ReplyNotices } from './reply-notices.js';

/** How long a tombstone outlives its request's deadline, in ms. */
const TOMBSTONE_MARGIN_MS = 10_000;

/** States that no longer change by themselves. */
const ENDED = new Set(['done', 'failed', 'cancelled', 'expired']);

export interface DurableParts {
  maxJobItems: number;
  redis: Redis;
  clock: RedisClock;
  admission: Admission;
  producer: JobProducer;
  batcher: JobBatcher;
  records: JobRecords;
  statuses: JobStatuses;
  notices: ReplyNotices;
  watch: JobWatch;
}

/** Who tells of the ends of requests that ask for it. */
export interface EndListener {
  await(record: JobRecord): Promise<void>;
  forget(id: string): Promise<void>;
}

/** How a durable request is answered once somebody asks. */
export interface DurableAsked {
  /** Name of the writer of its door's answers, and what that was asked. */
  writer: string;
  asked: unknown;
}

/**
 * Requests that outlive their clients: accepted, kept, and answered to whoever of their owner asks, at any gateway.
 */
export class DurableRequests {
  /** Absent where no callbacks are taken. */
  ends: EndListener | undefined;

  readonly #parts: DurableParts;
  /** What ends the wait of each call that waits. */
  readonly #waiting = new Set<() => void>();
  #draining = false;

  constructor(parts: DurableParts) {
    this.#parts = parts;
  }

  /** Waits for nothing any more: whoever waits is told how things stand, and asks another gateway. */
  drain(): void {
    this.#draining = true;
    for (const end of [...this.#waiting]) end();
  }

  /**
   * Keeps a record and enqueues the work. When it resolves, both are acknowledged by Redis.
   * @throws MillraceError as `infer` does before it waits, `job_limit` and `body_too_large`.
   */
  async submit(request: InferRequest, { writer, asked }: DurableAsked): Promise<JobRecord> {
    const { admission, clock, maxJobItems, producer } = this.#parts;
    const { durable, model } = request;
    if (!durable) throw new Error('a request that is not durable');
    const queue = queueName(model.name, model.version);
    if (!producer.ready) throw new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 });
    admission.admit(queue, request);
    try {
      const now = clock.now();
      const planned = planParts(request, { queue, replyTo: ANY_GATEWAY, maxJobItems, now });
      const record = recordOf(request, durable, { queue, writer, asked, planned });
      await this.#keep(record, now);
      await this.#enqueue(record, planned);
      return record;
    } finally {
      admission.handedOver(queue, request);
    }
  }

  /**
   * Takes back a request that has not ended.
   * @throws MillraceError `job_ended`, `queue_unavailable`.
   */
  async cancel(record: JobRecord): Promise<void> {
    const { clock, notices, records, redis, statuses } = this.#parts;
    const { state } = await statuses.of(record);
    if (ENDED.has(state)) throw new MillraceError('job_ended', `The job is ${state}; it can't be cancelled.`);
    if (!(await records.cancel(record, clock.now()))) throw new MillraceError('job_ended');
    const { queue, id } = record;
    await Promise.all([this.#takeBack(record), redis.publish(controlChannel(queue), id)]);
    await notices.tellAll(id);
  }

  /**
   * Notes that an administrator sent a job of a request again: it has ended once that one has.
   * @param generation of the reply that is to come.
   */
  async retried(id: string, jobId: string, generation: number): Promise<void> {
    const { clock, notices, records } = this.#parts;
    const record = await records.change(id, (held) => ({
      ...held,
      parts: held.parts.map((part) => (part.jobId === jobId ? { ...part, generation } : part)),
      keepUntil: Math.max(held.keepUntil, clock.now() + RETRY_KEEP_MS),
    }));
    if (!record) return;
    if (record.callback !== undefined) await this.ends?.await(record);
    await notices.tellAll(id);
  }

  /**
   * Where a request stands, once that is what is waited for or `waitMs` have passed; at once if either is so already.
   * A Redis that is away meanwhile is waited for as well.
   * @param client ends the wait when it goes; nobody else may listen for that.
   * @throws MillraceError `job_not_found`; what Redis throws, where it is away at the end.
   */
  async standing(
    record: JobRecord,
    waitMs: number,
    client?: ClientGone,
    isAwaited: (status: JobStatus) => boolean = hasEnded,
  ): Promise<JobStatus> {
    if (waitMs <= 0 || this.#draining || client?.gone) return await this.#now(record);
    return await new Promise((resolve) => {
      let last: JobStatus | undefined;
      const settle = (answer: JobStatus | Promise<JobStatus>): void => {
        clearTimeout(timer);
        stop();
        this.#waiting.delete(giveUp);
        resolve(answer);
      };
      const giveUp = (): void => settle(last ?? this.#now(record));
      const timer = setTimeout(() => settle(this.#now(record)), waitMs);
      const stop = this.#parts.watch.follow(record, {
        seen: (_, status) => {
          last = status;
          if (isAwaited(status)) settle(status);
        },
        failed: (error) => {
          // A Redis that is away is waited for.
          if (error instanceof MillraceError) settle(Promise.reject(error));
        },
      });
      this.#waiting.add(giveUp);
      client?.listen(giveUp);
    });
  }

  /** What was answered to a request that is done. @throws MillraceError `job_expired`. */
  result(record: JobRecord): Promise<InferResult> {
    return this.#parts.statuses.result(record);
  }

  async #now({ id, owner }: JobRecord): Promise<JobStatus> {
    const { records, statuses } = this.#parts;
    return await statuses.of(await records.read(id, owner));
  }

  async #keep(record: JobRecord, now: number): Promise<void> {
    try {
      await this.#parts.records.create(record, now);
      if (record.callback !== undefined) await this.ends?.await(record);
    } catch (cause) {
      if (cause instanceof MillraceError) throw cause;
      throw new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
    }
  }

  async #enqueue(record: JobRecord, planned: readonly PlannedPart[]): Promise<void> {
    const { batcher, records } = this.#parts;
    try {
      // Each in a job of its own, which its record names.
      await batcher.enqueue(record.queue, planned, record.priority, 0);
    } catch (error) {
      // What was added of it all the same is dropped by its workers: nobody was told of it.
      await this.#takeBack(record).catch(() => undefined);
      await records.drop(record).catch(() => undefined);
      if (record.callback !== undefined) await this.ends?.forget(record.id).catch(() => undefined);
      throw error;
    }
  }

  /** Removes what waits, and its inputs: those would lie in Redis until the deadline. */
  async #takeBack({ queue, id, deadlineAt, parts }: JobRecord): Promise<void> {
    const { clock, producer, redis } = this.#parts;
    const lifeMs = Math.ceil(Math.max(0, deadlineAt - clock.now()) + TOMBSTONE_MARGIN_MS);
    await redis.set(cancelKey(queue, id), '1', 'PX', lifeMs);
    await Promise.all(parts.map(({ jobId }) => producer.remove(queue, jobId)));
    await redis.unlink(parts.map(({ firstItem }) => payloadKey(queue, id, firstItem)));
  }
}

/** What whoever wants the answer of a request is told, where it has ended without one. */
export function errorOf({ state, error }: JobStatus): MillraceError | undefined {
  if (state === 'expired') return new MillraceError('job_expired');
  if (state === 'cancelled') return new MillraceError('job_cancelled');
  return error;
}

export function hasEnded({ state }: JobStatus): boolean {
  return ENDED.has(state);
}

interface Recorded extends DurableAsked {
  queue: string;
  planned: readonly PlannedPart[];
}

function recordOf(
  request: InferRequest,
  durable: NonNullable<InferRequest['durable']>,
  { queue, writer, asked, planned }: Recorded,
): JobRecord {
  const { requestId, tenant, model, itemCount, priority, partial, stamps, deadlineAt } = request;
  const { cost: _, ...description } = model;
  let bytes = itemCount * outputBytesPerItem(model);
  for (const part of planned) bytes += part.bytes;
  return {
    v: 1,
    id: requestId,
    owner: tenant,
    writer,
    asked,
    queue,
    model: description,
    itemCount,
    firstField: request.fieldOf?.(0),
    parts: planned.map(({ firstItem, count }) => ({ firstItem, count, jobId: jobId(requestId, firstItem) })),
    priority,
    partial,
    receivedAt: stamps.received,
    ...(durable.notBefore === undefined ? {} : { notBefore: durable.notBefore }),
    ...(durable.callback === undefined ? {} : { callback: durable.callback }),
    deadlineAt,
    keepUntil: durable.keepUntil,
    bytes: Math.ceil(bytes),
  };
}

/** Of outputs whose shape is fixed; the others count for nothing until they are there. */
function outputBytesPerItem({ outputs }: ModelDescription): number {
  let bytes = 0;
  for (const { datatype, shape } of outputs) {
    if (!shape.slice(1).includes(-1)) bytes += elementsPerItem(shape) * elementBytes(datatype);
  }
  return bytes;
}
