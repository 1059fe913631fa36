import {
  connectRedis,
  createLogger,
  decodeReplyHeader,
  jobId,
  LinkWatch,
  loadSettings,
  queueName,
  RedisClock,
  replyKey,
  untilReady,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { JobProducer } from '#gateway/inference/job-producer.js';
import type { Bench } from '../run/scenario.js';
import { IDENTITY, IDENTITY_VALUES } from './identity.js';

/** Far behind the end of the scenario: jobs run when they are told to. */
const SCHEDULED_MS = 3600 * 1000;
const SENT_TOGETHER = 32;
/** More than a reply's header takes. */
const HEADER_BYTES = 16 * 1024;

/** Kept jobs of a model that does nothing, which run when they are told to. */
export class ScheduledJobs {
  readonly #queue = queueName(IDENTITY.name, IDENTITY.version);

  private constructor(
    private readonly redis: Redis,
    private readonly producer: JobProducer,
  ) {}

  static async open(bench: Bench, redisUrl: string): Promise<ScheduledJobs> {
    const redis = connectRedis(redisUrl, 'producer', 'bench-jobs');
    bench.own(async () => redis.disconnect());
    await untilReady(redis);
    const logger = createLogger('error', { process: 'bench' });
    const producer = new JobProducer(redis, new LinkWatch(redis), new RedisClock(), loadSettings({}), logger);
    bench.own(() => producer.close());
    return new ScheduledJobs(redis, producer);
  }

  /** Sends `count` of them. @returns their ids. */
  async send(url: string, count: number): Promise<string[]> {
    const ids: string[] = [];
    const body = JSON.stringify({ inputs: { fp32: IDENTITY_VALUES } });
    const headers = {
      'content-type': 'application/json',
      prefer: 'respond-async',
      'millrace-not-before': new Date(Date.now() + SCHEDULED_MS).toISOString(),
    };
    let left = count;
    const sender = async (): Promise<void> => {
      while (left-- > 0) {
        const response = await fetch(`${url}/v1/models/${IDENTITY.name}/predict`, {
          method: 'POST',
          headers,
          body,
        });
        if (response.status !== 202) throw new Error(`a job was answered ${response.status}`);
        ids.push(((await response.json()) as { id: string }).id);
      }
    };
    await Promise.all(Array.from({ length: SENT_TOGETHER }, sender));
    return ids;
  }

  /** Has one of them run now. */
  async run(id: string): Promise<void> {
    const job = await this.producer.queue(this.#queue).getJob(jobId(id, 0));
    await job?.promote();
  }

  /** When a worker answered it, in epoch ms. */
  async repliedAt(id: string): Promise<number> {
    const start = await this.redis.getrangeBuffer(replyKey(this.#queue, id, 0), 0, HEADER_BYTES - 1);
    return decodeReplyHeader(start).stamps.replied ?? Number.NaN;
  }
}
