import {
  BULL_PREFIX,
  CALLBACKS_QUEUE,
  type GatewayMetrics,
  type Logger,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import { DelayedError, type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { HostGates } from './host-gates.js';
import { postOnce } from './post.js';
import { signedHeaders } from './signature.js';

/** The first retry comes after about this, in ms, each further one after three times as much, up to the longest. */
const FIRST_RETRY_MS = 5000;
const LONGEST_RETRY_MS = 2 * 3600 * 1000;
/** With those delays the last attempt is about 12 hours after the first. */
const ATTEMPTS = 13;
/** Deliveries to one host that a gateway holds, those that wait for others to it included: further ones are put off. */
const HELD_PER_HOST = 32;
/** Hosts that do not answer and that a gateway has room for before they hold up others. */
const SLOW_HOSTS = 8;
const KEPT_DELIVERED = { count: 1000, age: 24 * 3600 };
/** Those given up: the dead letters, which the dashboard can send again. */
const KEPT_DEAD = { count: 10_000, age: 7 * 24 * 3600 };
/** The receiver says that nobody is there any more. */
const GONE = 410;

/** One callback: where to, and what is said. */
export interface Delivery {
  url: string;
  /** Tells repeats: the same with every attempt. */
  id: string;
  body: string;
}

export type DeliverySettings = Pick<
  Settings,
  | 'callbackSecret'
  | 'callbackHosts'
  | 'callbackAllowHttp'
  | 'callbackAllowPrivate'
  | 'callbackTimeoutMs'
  | 'callbacksPerHost'
>;

/**
 * Delivers callbacks at least once, by a BullMQ queue that all gateways share: what one gateway can't deliver before
 * it ends, another does.
 */
export class Deliveries {
  readonly queue: Queue<Delivery>;
  readonly #worker: Worker<Delivery>;
  readonly #gates: HostGates;
  readonly #settings: DeliverySettings;
  readonly #clock: RedisClock;
  readonly #metrics: GatewayMetrics;

  constructor(parts: {
    /** Adds deliveries; fails at once while Redis is away. */
    redis: Redis;
    /** Fetches them; waits while Redis is away. */
    fetching: Redis;
    settings: DeliverySettings;
    clock: RedisClock;
    metrics: GatewayMetrics;
    logger: Logger;
    /** Absent: the one that all gateways share. */
    queue?: string;
    /** From the first attempt to the second, in ms. */
    firstRetryMs?: number;
  }) {
    const { settings, logger, queue = CALLBACKS_QUEUE, firstRetryMs = FIRST_RETRY_MS } = parts;
    this.#settings = settings;
    this.#clock = parts.clock;
    this.#metrics = parts.metrics;
    const heldPerHost = Math.max(HELD_PER_HOST, 2 * settings.callbacksPerHost);
    this.#gates = new HostGates(settings.callbacksPerHost, heldPerHost - settings.callbacksPerHost);
    this.queue = new Queue(queue, {
      connection: parts.redis,
      prefix: BULL_PREFIX,
      skipVersionCheck: true,
      skipWaitingForReady: true,
    });
    this.#worker = new Worker<Delivery>(queue, (job, token) => this.#deliver(job, token), {
      connection: parts.fetching,
      prefix: BULL_PREFIX,
      concurrency: SLOW_HOSTS * heldPerHost,
      settings: { backoffStrategy: (attempts) => retryMs(attempts, firstRetryMs) },
    });
    this.queue.on('error', () => undefined);
    this.#worker.on('error', (err) => logger.debug({ err }, 'callbacks can not be fetched'));
    this.#worker.on('failed', (job, err) => {
      const dead = job && (err instanceof UnrecoverableError || job.attemptsMade >= ATTEMPTS);
      if (!dead) return;
      this.#metrics.callbacks.inc({ outcome: 'dead' });
      logger.warn({ err, id: job.data.id }, 'a callback was given up; the dashboard can send it again');
    });
  }

  /** Takes a callback over; the same one again changes nothing. */
  async add(delivery: Delivery): Promise<void> {
    await this.queue.add('callback', delivery, {
      jobId: delivery.id,
      attempts: ATTEMPTS,
      backoff: { type: 'custom' },
      removeOnComplete: KEPT_DELIVERED,
      removeOnFail: KEPT_DEAD,
    });
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#worker.close(), this.queue.close()]);
  }

  async #deliver(job: Job<Delivery>, token: string | undefined): Promise<void> {
    const { url, id, body } = job.data;
    const { callbackSecret, callbackTimeoutMs: timeoutMs } = this.#settings;
    const { host } = new URL(url);
    const laterMs = this.#gates.putOffMs(host);
    if (laterMs !== undefined) {
      // It would hold a place that others could use, as long as its host takes.
      await job.moveToDelayed(Date.now() + laterMs, token);
      throw new DelayedError();
    }
    await this.#gates.pass(host, async () => {
      const headers = signedHeaders(callbackSecret, id, Math.floor(this.#clock.now() / 1000), body);
      const status = await postOnce(url, headers, body, { ...this.#settings, timeoutMs });
      if (status >= 200 && status < 300) {
        this.#metrics.callbacks.inc({ outcome: 'delivered' });
        return;
      }
      this.#metrics.callbacks.inc({ outcome: 'refused' });
      if (status === GONE) throw new UnrecoverableError('The receiver answered 410.');
      throw new Error(`The receiver answered ${status}.`);
    });
  }
}

/** @param attempts those made so far, at least 1. @returns the time to the next, in ms: a half to all of the step. */
function retryMs(attempts: number, firstRetryMs: number): number {
  const step = Math.min(firstRetryMs * 3 ** (attempts - 1), LONGEST_RETRY_MS);
  return Math.round(step * (0.5 + Math.random() / 2));
}
