import { MillraceError, type Settings } from '@millrace/shared';
import type { QueueLoad } from '../inference/queue-load.js';
import type { InferRequest } from '../inference/request.js';

const SHORTEST_RETRY_SECONDS = 1;
const LONGEST_RETRY_SECONDS = 60;
/** When nothing was seen draining, there is no rate to compute from. */
const UNKNOWN_RETRY_SECONDS = 5;

export type AdmissionLimits = Pick<Settings, 'maxQueuedItems' | 'maxQueuedBytes'>;

/** Decides at the door whether a request may join the queue: overload is refused at once, never waited out. */
export class Admission {
  readonly #load: QueueLoad;
  readonly #limits: AdmissionLimits;
  readonly #waitingBytes: () => number;

  /** @param waitingBytes input bytes of the requests that wait in this gateway now. */
  constructor(load: QueueLoad, limits: AdmissionLimits, waitingBytes: () => number) {
    this.#load = load;
    this.#limits = limits;
    this.#waitingBytes = waitingBytes;
  }

  /** @throws MillraceError `queue_full` with the seconds after which there should be room. */
  admit(queue: string, request: InferRequest): void {
    const { itemCount } = request;
    const over = this.#load.waitingItems(queue) + itemCount - this.#limits.maxQueuedItems;
    if (over > 0) throw full(this.#retryAfter(queue, over));
    let bytes = this.#waitingBytes();
    for (const input of request.inputs) bytes += input.data.byteLength;
    if (bytes > this.#limits.maxQueuedBytes) throw full(this.#retryAfter(queue, itemCount));
    this.#load.added(queue, itemCount);
  }

  /** Items of this gateway's requests that are not answered. */
  ownItems(queue: string): number {
    return this.#load.ownItems(queue);
  }

  /** To be told of every admitted request once it waits no longer; answers are what the drain rate counts. */
  settled(queue: string, items: number, answered: boolean): void {
    this.#load.settled(queue, items, answered);
  }

  #retryAfter(queue: string, items: number): number {
    const rate = this.#load.itemsPerSecond(queue);
    if (rate <= 0) return UNKNOWN_RETRY_SECONDS;
    return Math.min(LONGEST_RETRY_SECONDS, Math.max(SHORTEST_RETRY_SECONDS, Math.ceil(items / rate)));
  }
}

function full(retryAfterSeconds: number): MillraceError {
  return new MillraceError('queue_full', undefined, { retryAfterSeconds });
}
