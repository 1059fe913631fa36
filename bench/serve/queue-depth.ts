import { randomUUID } from 'node:crypto';
import {
  connectRedis,
  createLogger,
  jobId,
  LinkWatch,
  loadSettings,
  PRIORITIES,
  queueName,
  RedisClock,
  untilReady,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { JobProducer } from '#gateway/inference/job-producer.js';
import type { PlannedJob } from '#gateway/inference/parts.js';
import { type FetchedJob, JobConsumer } from '#worker/intake/job-consumer.js';
import type { Bench } from '../run/scenario.js';
import { IDENTITY } from './identity.js';

/** Adds in flight while a queue is filled. */
const FILL_TOGETHER = 1000;
const LIFE_MS = 24 * 3600 * 1000;

export type QueueOp = 'add' | 'remove' | 'fetch' | 'complete';

/** A queue with many jobs waiting, worked on by the gateway's producer and the worker's consumer. */
export class DeepQueue {
  private constructor(
    readonly depth: number,
    private readonly name: string,
    private readonly producer: JobProducer,
    private readonly consumer: JobConsumer,
    private readonly probe: Redis,
  ) {}

  static async open(bench: Bench, redisUrl: string, depth: number): Promise<DeepQueue> {
    const logger = createLogger('error', { process: 'bench' });
    const [forJobs, forFetches, probe] = [
      connectRedis(redisUrl, 'producer', 'bench-producer'),
      connectRedis(redisUrl, 'worker', 'bench-consumer'),
      connectRedis(redisUrl, 'subscriber', 'bench-probe'),
    ];
    for (const redis of [forJobs, forFetches, probe]) {
      bench.own(async () => redis.disconnect());
      await untilReady(redis);
    }
    const name = queueName(`depth-${depth}`, '1');
    const producer = new JobProducer(
      forJobs,
      new LinkWatch(forJobs),
      new RedisClock(),
      loadSettings({}),
      logger,
    );
    bench.own(() => producer.close());
    const consumer = new JobConsumer(name, forFetches, {
      onLocksLost: () => undefined,
      onError: (error) => bench.say(`  the queue reports an error: ${error.message}`),
    });
    bench.own(() => consumer.close());
    await consumer.start();
    return new DeepQueue(depth, name, producer, consumer, probe);
  }

  async fill(onProgress: (share: number) => void): Promise<void> {
    for (let done = 0; done < this.depth; done += FILL_TOGETHER) {
      await this.#add(Math.min(FILL_TOGETHER, this.depth - done));
      if (done % 100_000 === 0) onProgress(done / this.depth);
    }
  }

  /** Microseconds of Redis's CPU for each operation, `count` of each done; the depth is the same afterwards. */
  async measure(count: number): Promise<Record<QueueOp, number>> {
    const per = async (work: () => Promise<unknown>): Promise<number> => {
      const before = await this.#cpuUs();
      await work();
      return ((await this.#cpuUs()) - before) / count;
    };
    let added: PlannedJob[] = [];
    const add = await per(async () => {
      added = await this.#add(count);
    });
    const remove = await per(() =>
      Promise.all(added.map((job) => this.producer.remove(this.name, job.jobId))),
    );
    await this.#add(count);
    let fetched: FetchedJob[] = [];
    const fetch = await per(async () => {
      fetched = await this.#fetch(count);
    });
    const complete = await per(() => Promise.all(fetched.map((job) => this.consumer.complete(job))));
    return { add, remove, fetch, complete };
  }

  async #add(count: number): Promise<PlannedJob[]> {
    const now = Date.now();
    const jobs = Array.from({ length: count }, () => plannedJob(now));
    await Promise.all(jobs.map((job) => this.producer.add(this.name, job)));
    return jobs;
  }

  async #fetch(count: number): Promise<FetchedJob[]> {
    const jobs: FetchedJob[] = [];
    while (jobs.length < count) jobs.push(...(await this.consumer.fetch(count - jobs.length)));
    return jobs;
  }

  async #cpuUs(): Promise<number> {
    const info = await this.probe.info('cpu');
    const value = (name: string) =>
      Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? Number.NaN);
    return (value('used_cpu_user') + value('used_cpu_sys')) * 1e6;
  }
}

function plannedJob(now: number): PlannedJob {
  const requestId = randomUUID();
  return {
    jobId: jobId(requestId, 0),
    parts: [
      {
        firstItem: 0,
        count: 1,
        model: IDENTITY,
        bytes: 0,
        data: {
          requestId,
          firstItem: 0,
          count: 1,
          replyTo: 'bench',
          deadlineAt: now + LIFE_MS,
          onDisconnect: 'cancel',
          tenant: 'anonymous',
          priority: PRIORITIES.interactive,
          generation: 0,
          parameters: {},
          stamps: { received: now, enqueued: now },
          payload: { inline: 'A'.repeat(128) },
        },
      },
    ],
  };
}
