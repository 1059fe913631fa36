import { ANNOUNCEMENT_TTL_MS, isAlive, markerKey, type RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { HeldItem, HeldPart } from '../intake/held-job.js';

/** Deaths of workers that were running an item alone after which it is given up. */
const DEATHS_TO_QUARANTINE = 2;
/** An announcement that is renewed no more has expired by the third look. */
const MOST_LOOKS = 4;
/** Markers outlive the part's deadline by this, in ms. */
const KEEP_MS = 60_000;

/**
 * Marks which item of a job that was lost before is running now, and where. An item whose runners died
 * again and again is given up; its siblings are not. A marker counts as a death only if its worker has
 * ended: a pause of Redis costs every worker its locks and kills none.
 */
export class RunMarkers {
  readonly #redis: Redis;
  readonly #clock: RedisClock;
  readonly #queue: string;
  readonly #instance: string;

  constructor(redis: Redis, clock: RedisClock, queue: string, instance: string) {
    this.#redis = redis;
    this.#clock = clock;
    this.#queue = queue;
    this.#instance = instance;
  }

  async set(item: HeldItem): Promise<void> {
    const key = this.#key(item.part);
    const ttlMs = Math.max(0, item.part.data.deadlineAt - this.#clock.now()) + KEEP_MS;
    await this.#redis
      .multi()
      .hset(key, this.#field(item), Math.round(this.#clock.now()))
      .pexpire(key, Math.ceil(ttlMs))
      .exec();
  }

  /** The item's run came to an end here, whatever the end and whoever has the lock now. */
  async clear(item: HeldItem): Promise<void> {
    await this.#redis.hdel(this.#key(item.part), this.#field(item));
  }

  /** The items of a part that killed enough workers. */
  async quarantined(part: HeldPart): Promise<HeldItem[]> {
    const fields = await this.#redis.hkeys(this.#key(part));
    const suspects: { item: HeldItem; runners: string[] }[] = [];
    for (const item of part.items) {
      const prefix = `${item.index}:${part.data.generation}:`;
      const runners = fields
        .filter((field) => field.startsWith(prefix))
        .map((field) => field.slice(prefix.length));
      if (runners.length >= DEATHS_TO_QUARANTINE) suspects.push({ item, runners });
    }
    const guilty: HeldItem[] = [];
    for (const { item, runners } of suspects) {
      const dead = await Promise.all(runners.map((runner) => this.#hasEnded(runner)));
      if (dead.filter(Boolean).length >= DEATHS_TO_QUARANTINE) guilty.push(item);
    }
    return guilty;
  }

  /**
   * Looks until it was found dead twice in a row, half an announcement's lifetime apart: right after a pause
   * of Redis everybody looks dead, and right after its death everybody looks alive.
   */
  async #hasEnded(instance: string): Promise<boolean> {
    if (instance === this.#instance) return false;
    let dead = 0;
    for (let look = 0; look < MOST_LOOKS; look++) {
      if (look > 0) await new Promise((resolve) => setTimeout(resolve, ANNOUNCEMENT_TTL_MS / 2));
      dead = (await isAlive(this.#redis, instance, this.#clock.now())) ? 0 : dead + 1;
      if (dead === 2) return true;
    }
    return false;
  }

  #key(part: HeldPart): string {
    return markerKey(this.#queue, part.id);
  }

  #field(item: HeldItem): string {
    return `${item.index}:${item.part.data.generation}:${this.#instance}`;
  }
}
