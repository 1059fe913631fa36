import {
  MillraceError,
  type ModelDescription,
  type PriorityClass,
  queueName,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import type { ModelDirectory } from '../inference/model-directory.js';
import type { QueueLoad } from '../inference/queue-load.js';
import type { InferRequest } from '../inference/request.js';
import type { RedisMemory } from './redis-memory.js';

const SHORTEST_RETRY_SECONDS = 1;
const LONGEST_RETRY_SECONDS = 60;
const NO_WORKER_RETRY_SECONDS = 2;
/** Without a worker's word of what it can do there is no rate to compute from. */
const UNKNOWN_RETRY_SECONDS = 5;
/**
 * Share of a request's time that its predicted wait may fill: the prediction errs, and what is accepted should be
 * answered.
 */
const TRUSTED = 0.85;

/** Few enough that they spread over sessions and workers. */
const MOST_BULK_ITEMS = 32;
/** How long a session is to be busy with a job of bulk work while interactive work comes, in ms. */
const BULK_JOB_MS = 10;

export type AdmissionLimits = Pick<Settings, 'maxQueuedItems' | 'maxQueuedBytes'>;

export interface AdmissionParts {
  load: QueueLoad;
  directory: Pick<ModelDirectory, 'isServed' | 'drain' | 'sessions'>;
  memory: Pick<RedisMemory, 'tight'>;
  clock: RedisClock;
  limits: AdmissionLimits;
  /** Input bytes of the requests that wait in this gateway now. */
  waitingBytes(): number;
}

/** Decides at the door whether a request may join the queue: overload is refused at once, never waited out. */
export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /**
   * @throws MillraceError `no_worker`; `queue_full` beyond the limits of the queue or of Redis's memory;
   * `overloaded` when its answer can't be expected in time; all with the seconds after which to try again.
   */
  admit(queue: string, request: InferRequest): void {
    const { load, directory, memory, clock, limits, waitingBytes } = this.#parts;
    const { model, itemCount } = request;
    if (!directory.isServed(model)) {
      throw new MillraceError('no_worker', undefined, { retryAfterSeconds: NO_WORKER_RETRY_SECONDS });
    }
    if (itemCount > limits.maxQueuedItems) {
      throw new MillraceError(
        'too_many_items',
        `The request has ${itemCount} items; at most ${limits.maxQueuedItems} may wait on a model of this server.`,
      );
    }
    const rate = this.#itemsPerSecond(queue, model);
    const ahead = load.itemsAhead(queue, request.priority);
    const over = ahead + itemCount - limits.maxQueuedItems;
    if (over > 0) throw refusal('queue_full', over, rate);
    let bytes = waitingBytes();
    for (const input of request.inputs) bytes += input.data.byteLength;
    if (memory.tight || bytes > limits.maxQueuedBytes) throw refusal('queue_full', itemCount, rate);
    const inTime = rate * ((request.deadlineAt - clock.now()) / 1000) * TRUSTED;
    // Behind nobody it is tried, whatever is predicted: no later moment would be better.
    if (ahead > 0 && rate > 0 && ahead + itemCount > inTime) {
      throw refusal('overloaded', ahead + itemCount - inTime, rate);
    }
    load.added(queue, itemCount, request.priority);
  }

  /** How long this gateway's own items before a request keep the sessions busy, in ms; 0 while a session may be idle. */
  aheadMs(queue: string, { model, priority }: InferRequest): number {
    const { load, directory } = this.#parts;
    const items = load.ownItems(queue, priority);
    // With two items a session, each has one to run and one to go on with.
    if (items <= 2 * directory.sessions(model)) return 0;
    const { capacity } = directory.drain(model);
    return capacity > 0 ? (items * 1000) / capacity : 0;
  }

  /**
   * Most items of a job of bulk work. While interactive work comes, it is what a session runs in a moment: a worker that
   * has fetched a larger one fetches nothing else until that is run.
   */
  bulkJobItems(model: ModelDescription): number {
    const { load, directory } = this.#parts;
    if (!load.interactiveLately(queueName(model.name, model.version))) return MOST_BULK_ITEMS;
    const perSession = directory.drain(model).capacity / Math.max(1, directory.sessions(model));
    return Math.min(MOST_BULK_ITEMS, Math.max(1, Math.floor((perSession * BULK_JOB_MS) / 1000)));
  }

  /** To be told of every admitted request once it waits no longer. */
  settled(queue: string, { itemCount, priority }: InferRequest): void {
    this.#parts.load.settled(queue, itemCount, priority);
  }

  /** To be told of an admitted request that nobody here waits for. */
  handedOver(queue: string, { itemCount, priority }: InferRequest): void {
    this.#parts.load.handedOver(queue, itemCount, priority);
  }

  /** How long jobs that wait behind `jobs` others will wait, in ms; undefined while nothing is known of the rate. */
  predictedWaitMs(
    queue: string,
    { model, priority }: { model: ModelDescription; priority: PriorityClass },
    jobs: number,
  ): number | undefined {
    const rate = this.#itemsPerSecond(queue, model);
    if (rate <= 0) return undefined;
    return Math.round((jobs * this.#parts.load.itemsPerJob(queue, priority) * 1000) / rate);
  }

  /**
   * What all workers will answer a second. While jobs queue up it is what they do answer; else what their
   * sessions could run: little is answered because little is asked.
   */
  #itemsPerSecond(queue: string, model: ModelDescription): number {
    const { capacity, answered } = this.#parts.directory.drain(model);
    return this.#parts.load.backlogged(queue) && answered > 0 ? answered : Math.max(capacity, answered);
  }
}

/** @param items how many have to be answered before there is room. */
function refusal(code: 'queue_full' | 'overloaded', items: number, rate: number): MillraceError {
  const seconds = rate > 0 ? Math.ceil(items / rate) : UNKNOWN_RETRY_SECONDS;
  const retryAfterSeconds = Math.min(LONGEST_RETRY_SECONDS, Math.max(SHORTEST_RETRY_SECONDS, seconds));
  return new MillraceError(code, undefined, { retryAfterSeconds });
}
