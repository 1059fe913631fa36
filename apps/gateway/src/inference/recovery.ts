import type { GatewayMetrics, Logger } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { JobProducer } from './job-producer.js';
import type { PlannedJob } from './parts.js';
import type { PendingRequest } from './pending-request.js';
import type { ReplyWaiter } from './reply-waiter.js';

/**
 * When the command connection comes back, Redis may have lost what it had acknowledged. For every accepted
 * request that still waits, a part with neither a stored reply nor a job is added again under the same job
 * id: this gateway still holds all of it.
 */
export class Recovery {
  readonly #redis: Redis;
  readonly #producer: JobProducer;
  readonly #waiter: ReplyWaiter;
  readonly #metrics: GatewayMetrics;
  readonly #logger: Logger;
  #away = false;
  readonly #onClose = (): void => {
    if (this.#away) return;
    this.#away = true;
    this.#logger.warn('the connection to Redis is lost; requests are refused until it is back');
  };
  readonly #onReady = (): void => {
    this.#away = false;
    this.#logger.warn('the connection to Redis is back');
    void this.#recover();
  };

  constructor(
    redis: Redis,
    producer: JobProducer,
    waiter: ReplyWaiter,
    metrics: GatewayMetrics,
    logger: Logger,
  ) {
    this.#redis = redis;
    this.#producer = producer;
    this.#waiter = waiter;
    this.#metrics = metrics;
    this.#logger = logger;
  }

  start(): void {
    this.#redis.on('close', this.#onClose);
    this.#redis.on('ready', this.#onReady);
  }

  stop(): void {
    this.#redis.off('close', this.#onClose);
    this.#redis.off('ready', this.#onReady);
  }

  async #recover(): Promise<void> {
    try {
      const waiting = this.#waiter.waiting();
      await this.#waiter.collect(waiting);
      await this.#addForgotten(waiting);
    } catch (err) {
      // The connection broke again: its next return starts over.
      this.#logger.warn({ err }, 'waiting requests could not all be checked after a reconnect');
    }
  }

  async #addForgotten(waiting: readonly PendingRequest[]): Promise<void> {
    const queues = new Map<string, Map<PlannedJob, PendingRequest[]>>();
    for (const pending of waiting) {
      if (!pending.accepted || pending.settled) continue;
      const jobs = queues.get(pending.queue) ?? new Map<PlannedJob, PendingRequest[]>();
      queues.set(pending.queue, jobs);
      for (const { job } of pending.unanswered()) if (job) jobs.set(job, [...(jobs.get(job) ?? []), pending]);
    }
    for (const [queue, jobs] of queues) {
      const exist = await this.#producer.exist(
        queue,
        [...jobs.keys()].map((job) => job.jobId),
      );
      const forgotten = [...jobs].filter((_, index) => exist[index] === false);
      await Promise.all(forgotten.map(([job, requests]) => this.#addAgain(queue, job, requests)));
    }
  }

  async #addAgain(queue: string, { jobId }: PlannedJob, requests: readonly PendingRequest[]): Promise<void> {
    // Settled meanwhile: the job was not forgotten but finished and cleared away.
    const parts = requests
      .filter((pending) => !pending.settled)
      .flatMap((pending) => pending.unanswered())
      .filter((part) => part.job?.jobId === jobId);
    if (parts.length === 0) return;
    await this.#producer.add(queue, { jobId, parts });
    this.#metrics.reAdded.inc();
    this.#logger.warn(
      { jobId, parts: parts.length },
      'Redis came back without a job it had accepted; added again',
    );
  }
}
