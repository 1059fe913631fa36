import { randomUUID } from 'node:crypto';
import { jobId, type PriorityClass } from '@millrace/shared';
import type { JobProducer } from './job-producer.js';
import type { PlannedJob, PlannedPart } from './parts.js';
import type { QueueLoad } from './queue-load.js';

/** Longest that a part may wait for others to travel with, in ms. */
const MOST_LINGER_MS = 8;
/** Most items in a job of several parts: few enough that a burst still spreads over sessions and workers. */
const MOST_ITEMS = 32;

interface OpenJob {
  job: PlannedJob;
  priority: PriorityClass;
  items: number;
  timer: NodeJS.Timeout;
  accepted: Promise<void>;
  resolve(added: Promise<void>): void;
}

/**
 * Lets small parts of different requests travel in one job. A job costs Redis and both processes the same
 * whatever is in it, so under load this is worth several requests' overhead; while sessions are idle no part
 * waits for company.
 */
export class JobBatcher {
  readonly #producer: JobProducer;
  readonly #load: QueueLoad;
  readonly #mostItems: number;
  /** The job that still takes parts, by queue and priority. */
  readonly #open = new Map<string, OpenJob>();

  /** @param maxJobItems most items in one part, and so at most in one job. */
  constructor(producer: JobProducer, load: QueueLoad, maxJobItems: number) {
    this.#producer = producer;
    this.#load = load;
    this.#mostItems = Math.min(MOST_ITEMS, maxJobItems);
  }

  /**
   * Adds parts; when it resolves, all are accepted.
   * @param aheadMs how long the work ahead of them takes: so long, waiting for company delays nothing.
   * @throws MillraceError `queue_unavailable`.
   */
  async enqueue(
    queue: string,
    parts: readonly PlannedPart[],
    priority: PriorityClass,
    aheadMs: number,
  ): Promise<void> {
    await Promise.all(parts.map((part) => this.#enqueue(queue, part, priority, aheadMs)));
  }

  #enqueue(queue: string, part: PlannedPart, priority: PriorityClass, aheadMs: number): Promise<void> {
    // A part that fills half a job gains little by company.
    if (aheadMs <= 0 || part.count > this.#mostItems / 2) {
      return this.#add(queue, jobOf([part]), priority);
    }
    const key = `${queue} ${priority}`;
    let open = this.#open.get(key);
    if (open && open.items + part.count > this.#mostItems) {
      this.#close(queue, key, open);
      open = undefined;
    }
    open ??= this.#openJob(queue, key, priority, Math.min(aheadMs, MOST_LINGER_MS));
    open.job.parts.push(part);
    part.job = open.job;
    open.items += part.count;
    return open.accepted;
  }

  #openJob(queue: string, key: string, priority: PriorityClass, lingerMs: number): OpenJob {
    let resolve: OpenJob['resolve'] = () => undefined;
    const accepted = new Promise<void>((done) => {
      resolve = done;
    });
    const open: OpenJob = {
      job: { jobId: randomUUID(), parts: [] },
      priority,
      items: 0,
      timer: setTimeout(() => this.#close(queue, key, open), lingerMs),
      accepted,
      resolve,
    };
    this.#open.set(key, open);
    return open;
  }

  #close(queue: string, key: string, open: OpenJob): void {
    clearTimeout(open.timer);
    if (this.#open.get(key) === open) this.#open.delete(key);
    open.resolve(this.#add(queue, open.job, open.priority));
  }

  #add(queue: string, job: PlannedJob, priority: PriorityClass): Promise<void> {
    const items = job.parts.reduce((sum, part) => sum + part.count, 0);
    this.#load.jobAdded(queue, items, priority);
    return this.#producer.add(queue, job);
  }
}

/** A job of parts that belong together; one part's job has that part's name, so that a person finds it. */
function jobOf(parts: [PlannedPart]): PlannedJob {
  const [{ data }] = parts;
  const job: PlannedJob = { jobId: jobId(data.requestId, data.firstItem), parts };
  for (const part of parts) part.job = job;
  return job;
}
