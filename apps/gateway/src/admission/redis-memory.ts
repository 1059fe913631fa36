import type { Logger } from '@millrace/shared';
import type { Redis } from 'ioredis';

const READ_MS = 1000;
/**
 * Beyond this share of `maxmemory` nothing more is accepted. At the limit Redis refuses adding, fetching and
 * renewing locks alike, so a full queue could never drain.
 */
const TIGHT_SHARE = 0.8;
const WARN_AGAIN_MS = 60_000;

/** Watches how full Redis is, once a second, and that it may not throw away what waits. */
export class RedisMemory {
  readonly #redis: Redis;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #tight = false;
  #policyTold = '';
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#logger = logger;
  }

  /** Whether Redis has too little memory left to accept more work. */
  get tight(): boolean {
    return this.#tight;
  }

  async start(): Promise<void> {
    await this.#read();
    this.#timer = setInterval(() => {
      // While Redis is away nothing is accepted anyhow.
      this.#read().catch(() => undefined);
    }, READ_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #read(): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    const info = await this.#redis.info('memory');
    const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
    this.#judgePolicy(field('maxmemory_policy'));
    const [used, most] = [Number(field('used_memory')), Number(field('maxmemory'))];
    this.#tight = most > 0 && used > most * TIGHT_SHARE;
    if (!this.#tight || performance.now() - this.#toldAt < WARN_AGAIN_MS) return;
    this.#toldAt = performance.now();
    this.#logger.error(
      { usedBytes: used, maxmemoryBytes: most },
      'Redis has little memory left; requests are refused with 429 until there is more - raise its maxmemory, or keep fewer finished jobs',
    );
  }

  #judgePolicy(policy: string): void {
    if (policy === '' || policy === this.#policyTold) return;
    this.#policyTold = policy;
    if (policy === 'noeviction') return;
    this.#logger.error(
      { policy },
      'Redis may throw away waiting jobs and answers: its maxmemory-policy must be noeviction - CONFIG SET maxmemory-policy noeviction',
    );
  }
}
