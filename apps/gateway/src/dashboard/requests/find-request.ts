import { type JobData, jobId as jobIdOf, type Part, parseJobData, type ReplyHeader } from '@millrace/shared';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { JobProducer } from '../../inference/job-producer.js';
import type { ModelDirectory } from '../../inference/model-directory.js';
import type { ReplyStore } from '../../inference/reply-store.js';
import type { JobRecord, RecordedPart } from '../../jobs/job-record.js';
import type { JobRecords } from '../../jobs/job-records.js';
import type { JobStatus, JobStatuses } from '../../jobs/job-status.js';

/** Parts of a request that are looked at. */
const MOST_PARTS = 200;
/** Jobs of each state of each queue that are searched for a request that travelled with others. */
const MOST_SEARCHED = 1000;
const SEARCHED_TOGETHER = 200;
const STATES = ['active', 'wait', 'prioritized', 'failed', 'completed'] as const;

/** One part of a request, as far as anything is kept of it. */
export interface PartView {
  firstItem: number;
  count: number;
  queue: string;
  jobId: string;
  /** BullMQ's state of its job; absent where that is kept no longer. */
  state?: string;
  job?: Job;
  data?: Part;
  reply?: ReplyHeader;
}

export interface RequestView {
  id: string;
  /** Of a durable request. */
  record?: JobRecord;
  status?: JobStatus;
  parts: PartView[];
  /** How many there are besides. */
  moreParts: number;
}

/** A job that carries work of several requests. */
export interface JobView {
  queue: string;
  jobId: string;
  state: string;
  parts: Part[];
}

export type Found = { request: RequestView } | { job: JobView };

export interface FinderParts {
  redis: Redis;
  directory: ModelDirectory;
  producer: JobProducer;
  store: ReplyStore;
  records: JobRecords;
  statuses: JobStatuses;
}

/** Finds what is kept of a request: its record, its jobs, its stored replies. */
export class RequestFinder {
  constructor(private readonly parts: FinderParts) {}

  /** @param id a request's, or that of a job which carries several requests' parts. */
  async find(id: string): Promise<Found | undefined> {
    const record = await this.parts.records.find(id);
    if (record) return { request: await this.#durable(record) };
    const queues = this.parts.directory.list().map(({ queue }) => queue);
    for (const queue of queues) {
      const job = await this.#job(queue, id);
      if (job) return job;
      const parts = await this.#ofItsOwn(queue, id);
      if (parts.length > 0) return { request: await this.#loose(id, queue, parts) };
    }
    for (const queue of queues) {
      const request = await this.#loose(id, queue, []);
      if (request.parts.length > 0) return { request };
    }
    return undefined;
  }

  async #durable(record: JobRecord): Promise<RequestView> {
    const shown = record.parts.slice(0, MOST_PARTS);
    const parts = await Promise.all(shown.map((part) => this.#recorded(record.queue, part)));
    const view = await this.#view(record.id, record.queue, parts);
    const moreParts = record.parts.length - shown.length;
    return { ...view, record, status: await this.parts.statuses.of(record), moreParts };
  }

  async #recorded(queue: string, { firstItem, count, jobId }: RecordedPart): Promise<PartView> {
    const job = await this.#read(this.parts.producer.queue(queue), jobId);
    const data = job && dataOf(job)?.parts[0];
    return { firstItem, count, queue, jobId, ...(await withState(job)), ...(data ? { data } : {}) };
  }

  /** A request whose parts travelled alone, each in a job that is named after it. */
  async #ofItsOwn(queue: string, id: string): Promise<PartView[]> {
    const parts: PartView[] = [];
    for (let firstItem = 0; parts.length < MOST_PARTS; ) {
      const jobId = jobIdOf(id, firstItem);
      const job = await this.#read(this.parts.producer.queue(queue), jobId);
      const data = job && dataOf(job)?.parts.find(({ requestId }) => requestId === id);
      if (!data) break;
      parts.push({ firstItem, count: data.count, queue, jobId, ...(await withState(job)), data });
      firstItem += data.count;
    }
    return parts;
  }

  /** A request that is not kept. What is in no job of its own travelled in company: only data of jobs tell in which. */
  async #loose(id: string, queue: string, own: readonly PartView[]): Promise<RequestView> {
    const known = new Set(own.map(({ firstItem }) => firstItem));
    const others = (await this.#search(queue, id)).filter(({ firstItem }) => !known.has(firstItem));
    return await this.#view(
      id,
      queue,
      [...own, ...others].sort((a, b) => a.firstItem - b.firstItem),
    );
  }

  async #job(queue: string, jobId: string): Promise<Found | undefined> {
    const job = await this.#read(this.parts.producer.queue(queue), jobId);
    const data = job && dataOf(job);
    return data && { job: { queue, jobId, state: await job.getState(), parts: data.parts } };
  }

  async #search(queueName: string, id: string): Promise<PartView[]> {
    const queue = this.parts.producer.queue(queueName);
    const found: PartView[] = [];
    for (const state of STATES) {
      const ids = await queue.getRanges([state], 0, MOST_SEARCHED - 1);
      for (let at = 0; at < ids.length; at += SEARCHED_TOGETHER) {
        for (const job of await this.#naming(id, queue, ids.slice(at, at + SEARCHED_TOGETHER))) {
          for (const data of dataOf(job)?.parts ?? []) {
            if (data.requestId !== id || !job.id) continue;
            const { firstItem, count } = data;
            found.push({ firstItem, count, queue: queueName, jobId: job.id, state, job, data });
          }
        }
      }
    }
    return found;
  }

  /** Those of some jobs whose data name a request. */
  async #naming(id: string, queue: Queue, jobIds: readonly string[]): Promise<Job[]> {
    const texts = await Promise.all(jobIds.map((jobId) => this.parts.redis.hget(queue.toKey(jobId), 'data')));
    const naming = jobIds.filter((_, i) => texts[i]?.includes(id));
    const jobs = await Promise.all(naming.map((jobId) => this.#read(queue, jobId)));
    return jobs.filter((job) => job !== undefined);
  }

  /** With the stored replies, where there still are any. */
  async #view(id: string, queue: string, parts: PartView[]): Promise<RequestView> {
    const addresses = parts.map(({ firstItem }) => ({ requestId: id, firstItem }));
    const replies = await this.parts.store.readHeaders(queue, addresses);
    return {
      id,
      parts: parts.map((part, i) => ({ ...part, ...(replies[i] ? { reply: replies[i] } : {}) })),
      moreParts: 0,
    };
  }

  /** BullMQ throws for data that is no JSON. */
  async #read(queue: Queue, jobId: string): Promise<Job | undefined> {
    return await queue.getJob(jobId).catch((error: unknown) => {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    });
  }
}

async function withState(job: Job | undefined): Promise<{ job: Job; state: string } | undefined> {
  return job && { job, state: await job.getState() };
}

function dataOf(job: Job): JobData | undefined {
  try {
    return parseJobData(job.data);
  } catch {
    return undefined;
  }
}
