import {
  ANY_GATEWAY,
  type JobData,
  MillraceError,
  type Part,
  parseJobData,
  type RedisClock,
} from '@millrace/shared';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { answerRemoved } from '../inference/removed-work.js';
import type { DurableRequests } from '../jobs/durable.js';
import type { JobRecords } from '../jobs/job-records.js';
import { Refusal } from './board-queue.js';

export interface JobActionsParts {
  redis: Redis;
  clock: RedisClock;
  /** Names this gateway where it answers in a worker's stead. */
  gatewayId: string;
  durable: DurableRequests;
  records: JobRecords;
}

/** What an administrator does to a job, with what that means for the requests whose work it is. */
export class JobActions {
  constructor(private readonly parts: JobActionsParts) {}

  /**
   * Removes a job. One that was still to be run is an answer to its requests: they are cancelled.
   * @param remove does so in BullMQ.
   * @throws Refusal for one that a worker holds.
   */
  async remove(queue: string, job: Job, remove: () => Promise<void>): Promise<void> {
    const state = await job.getState();
    // Asked of BullMQ, a job whose lock is just lost would be removed, and run to its end all the same.
    if (state === 'active') throw new Refusal('A worker holds the job.');
    const data = dataOf(job);
    const open = state === 'completed' || state === 'failed' ? [] : (data?.parts ?? []);
    // Before it is gone: where a durable request stands is told by its jobs.
    await Promise.all(open.filter(isDurable).map((part) => this.#cancel(part)));
    await remove();
    const inputs = (data?.parts ?? []).flatMap(({ payload }) => ('key' in payload ? [payload.key] : []));
    if (inputs.length > 0) await this.parts.redis.unlink(inputs);
    if (!data) return;
    const waited = open.filter((part) => !isDurable(part));
    await Promise.all(
      waited.map((part) => answerRemoved(this.parts, queue, data, part, this.parts.gatewayId)),
    );
  }

  /** Whether a job can be run again: all that it needs is still there. */
  async isComplete(job: Job): Promise<boolean> {
    const parts = dataOf(job)?.parts ?? [];
    const keys = parts.flatMap(({ payload }) => ('key' in payload ? [payload.key] : []));
    const found = await Promise.all(keys.map((key) => this.parts.redis.exists(key)));
    return !found.includes(0);
  }

  /**
   * Sends a job that has ended again, and has its durable requests wait for that.
   * @param retry does so in BullMQ.
   */
  async retry(job: Job, retry: () => Promise<void>): Promise<void> {
    const { attemptsMade, id = '' } = job;
    await retry();
    const durable = (dataOf(job)?.parts ?? []).filter(isDurable);
    await Promise.all(
      durable.map(({ requestId, generation }) =>
        // As its worker will count.
        this.parts.durable.retried(requestId, id, generation + attemptsMade),
      ),
    );
  }

  /** Takes back a whole durable request: without this part it has no answer. */
  async #cancel({ requestId }: Part): Promise<void> {
    const record = await this.parts.records.find(requestId);
    if (!record) return;
    try {
      await this.parts.durable.cancel(record);
    } catch (error) {
      // It has its answer already; this job was only sent again.
      if (!(error instanceof MillraceError && error.code === 'job_ended')) throw error;
    }
  }
}

/** Its answer is for whoever asks, not for one gateway that waits. */
function isDurable({ replyTo }: Part): boolean {
  return replyTo === ANY_GATEWAY;
}

/** @returns undefined for data that another tool wrote wrongly: nobody waits for that. */
function dataOf(job: Job): JobData | undefined {
  try {
    return parseJobData(job.data);
  } catch {
    return undefined;
  }
}
