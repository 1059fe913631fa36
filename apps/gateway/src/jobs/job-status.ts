import { MillraceError, type RedisClock, type Reply, replyGeneration, replyKey } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { gather } from '../inference/gather.js';
import { failIfAnyFailed } from '../inference/item-errors.js';
import type { JobProducer } from '../inference/job-producer.js';
import { type ReplyAddress, type ReplyStore, tryDecodeReply } from '../inference/reply-store.js';
import type { InferResult } from '../inference/request.js';
import type { JobRecord, RecordedPart } from './job-record.js';

export const JOB_STATES = [
  'scheduled',
  'queued',
  'running',
  'done',
  'failed',
  'cancelled',
  'expired',
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** Where a durable request stands. */
export interface JobStatus {
  state: JobState;
  /** Items that are answered, whatever with. */
  itemsDone: number;
  /** Jobs that are fetched before its next one, while it waits. */
  position?: number;
  /** Why it failed. */
  error?: MillraceError;
}

/** Tells where durable requests stand, from their stored replies and the queue. */
export class JobStatuses {
  constructor(
    private readonly parts: { redis: Redis; producer: JobProducer; store: ReplyStore; clock: RedisClock },
  ) {}

  async of(record: JobRecord): Promise<JobStatus> {
    const { parts } = record;
    const there = await this.#answered(record);
    const itemsDone = there.reduce((sum, part) => sum + part.count, 0);
    if (record.cancelledAt !== undefined) return { state: 'cancelled', itemsDone };
    if (this.parts.clock.now() > record.keepUntil) return { state: 'expired', itemsDone };
    if (there.length === parts.length) return await this.#ended(record, itemsDone);
    const answered = new Set(there);
    const open = parts.filter((part) => !answered.has(part));
    const standing = await this.parts.producer.standing(
      record.queue,
      open.map(({ jobId }) => jobId),
    );
    if (standing.active || (itemsDone > 0 && standing.position !== undefined)) {
      return { state: 'running', itemsDone };
    }
    if (standing.position !== undefined) return { state: 'queued', itemsDone, position: standing.position };
    if (standing.delayed) return { state: 'scheduled', itemsDone };
    // Neither waiting nor running, and not answered: it was answered in between, or Redis has lost it.
    const again = await this.#answered(record);
    if (again.length > there.length) return this.of(record);
    return { state: 'failed', itemsDone, error: new MillraceError('job_lost') };
  }

  /**
   * Where a request that waits stands now, by a command a part; undefined where that takes a whole look: it waits no
   * longer, or not with all its parts.
   */
  async glance({ queue, parts, keepUntil }: JobRecord, last: JobStatus): Promise<JobStatus | undefined> {
    const { producer, clock } = this.parts;
    const jobIds = parts.map(({ jobId }) => jobId);
    if (last.itemsDone > 0 || clock.now() > keepUntil) return undefined;
    if (last.state === 'scheduled') return (await producer.areDelayed(queue, jobIds)) ? last : undefined;
    if (last.state !== 'queued') return undefined;
    const positions = await producer.positions(queue, jobIds);
    if (positions.includes(undefined)) return undefined;
    return { ...last, position: Math.min(...positions.map(Number)) };
  }

  /**
   * The answers of a request whose parts all have theirs.
   * @throws MillraceError `job_expired`, `internal`.
   */
  async result(record: JobRecord): Promise<InferResult> {
    const replies: Reply[] = [];
    for (const stored of await this.parts.store.read(record.queue, addressesOf(record))) {
      if (!stored) throw new MillraceError('job_expired');
      const reply = tryDecodeReply(stored);
      if ('error' in reply) throw reply.error;
      replies.push(reply);
    }
    const { id, model, itemCount, firstField, receivedAt, parts } = record;
    const base = firstField?.replace(/\[0\]$/, '');
    const fieldOf = firstField && ((index: number) => (base === firstField ? base : `${base}[${index}]`));
    return gather(
      { requestId: id, model, itemCount, ...(fieldOf ? { fieldOf } : {}), stamps: { received: receivedAt } },
      parts,
      replies,
    );
  }

  async #ended(record: JobRecord, itemsDone: number): Promise<JobStatus> {
    // Outputs are many MB, and how it stands is asked far more often than for them.
    const headers = await this.parts.store.readHeaders(record.queue, addressesOf(record));
    const isDone = headers.every(
      (header) => header && (record.partial || header.items.every(({ status }) => status === 'ok')),
    );
    if (isDone) return { state: 'done', itemsDone };
    try {
      const result = await this.result(record);
      if (!record.partial) failIfAnyFailed(result);
      return { state: 'done', itemsDone };
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (error.code === 'job_expired') return { state: 'expired', itemsDone };
      return { state: 'failed', itemsDone, error };
    }
  }

  /** The parts that have a stored reply. */
  async #answered(record: JobRecord): Promise<RecordedPart[]> {
    const found = await Promise.all(record.parts.map((part) => this.#isAnswered(record, part)));
    return record.parts.filter((_, i) => found[i]);
  }

  async #isAnswered({ queue, id }: JobRecord, { firstItem, generation = 0 }: RecordedPart): Promise<boolean> {
    const key = replyKey(queue, id, firstItem);
    if (generation === 0) return (await this.parts.redis.exists(key)) === 1;
    const stored = replyGeneration(await this.parts.redis.getrangeBuffer(key, 0, 3));
    return stored !== undefined && stored >= generation;
  }
}

function addressesOf({ id, parts }: JobRecord): ReplyAddress[] {
  return parts.map(({ firstItem }) => ({ requestId: id, firstItem }));
}
