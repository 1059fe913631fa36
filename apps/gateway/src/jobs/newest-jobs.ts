import { NEWEST_JOBS_KEY } from '@millrace/shared';
import type { Redis } from 'ioredis';

/** So many are listed, whoever owns them; older ones are found by their ids. */
const KEPT = 1000;

/** The newest durable requests of all API keys, for whoever runs the server. */
export class NewestJobs {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** @param receivedAt epoch ms. */
  async note(id: string, receivedAt: number): Promise<void> {
    await Promise.all([
      this.#redis.zadd(NEWEST_JOBS_KEY, receivedAt, id),
      this.#redis.zremrangebyrank(NEWEST_JOBS_KEY, 0, -KEPT - 1),
    ]);
  }

  async forget(id: string): Promise<void> {
    await this.#redis.zrem(NEWEST_JOBS_KEY, id);
  }

  /** Their ids, the newest first, from the `skipped`th on. */
  async list(skipped: number, most: number): Promise<string[]> {
    return await this.#redis.zrevrange(NEWEST_JOBS_KEY, skipped, skipped + most - 1);
  }
}
