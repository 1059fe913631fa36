import type { Part } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { makeApiKey } from '#gateway/admission/api-keys.js';
import type { Gateway } from '#gateway/gateway.js';
import { Harness } from '#gateway/test-support/harness.js';
import { textModel } from '#gateway/test-support/models.js';
import { testRedis, uniqueName } from '#gateway/test-support/redis.js';
import { RedisProxy } from '#gateway/test-support/redis-proxy.js';
import { StandInWorker } from '#gateway/test-support/stand-in-worker.js';
import type { Target } from './door.js';

export const MAX_BODY_BYTES = 200_000;
export const MAX_REQUEST_ITEMS = 100;
export const MAX_JOB_ITEMS = 8;
/** A text that the stand-in's model fails on, and one that it calls too long. */
export const BROKEN = 'broken';
export const TOO_LONG = 'too long';
/** Announced workers are missed after a while without word from them. */
const ANNOUNCE_MS = 500;

const addressOf = (gateway: Gateway | undefined) => ({
  url: gateway?.url ?? '',
  grpc: gateway?.grpc?.address ?? '',
});

/** What the suite's requests meet: gateways in every state, over real Redis. */
export class Stage {
  readonly #harness = new Harness();
  readonly redis: Redis = testRedis();
  readonly #names = {
    text: uniqueName('conform'),
    silent: uniqueName('conform-silent'),
    absent: uniqueName('conform-absent'),
  };
  readonly #proxy = new RedisProxy();
  readonly keys = { infer: '', other: '' };
  #worker: StandInWorker | undefined;
  #silent: StandInWorker | undefined;
  #main: Gateway | undefined;
  #full: Gateway | undefined;
  #keyed: Gateway | undefined;
  #cutOff: Gateway | undefined;

  async open(): Promise<void> {
    this.#harness.onRelease(() => this.redis.disconnect());
    const { text, silent, absent } = this.#names;
    this.#worker = await this.#harness.worker(textModel(text), {
      verdict: (item) => {
        if (item === BROKEN) return { status: 'failed', code: 'inference_failed', message: 'It broke.' };
        if (item === TOO_LONG) return { status: 'failed', code: 'text_too_long', message: 'Too long.' };
        return { status: 'ok', tokens: 3 };
      },
    });
    this.#silent = await this.#announced(silent);
    const models = [text, silent, absent];
    this.#main = await this.#harness.gateway({
      models,
      maxJobItems: MAX_JOB_ITEMS,
      maxBodyBytes: MAX_BODY_BYTES,
    });
    this.#full = await this.#harness.gateway({ models, maxQueuedItems: 1 });
    const [infer, other] = [makeApiKey('infers', ['infer']), makeApiKey('looks', ['jobs'])];
    Object.assign(this.keys, { infer: infer.key, other: other.key });
    this.#keyed = await this.#harness.gateway({ models, apiKeys: [infer.entry, other.entry] });
    await this.#proxy.open();
    this.#harness.onRelease(() => this.#proxy.cut());
    this.#cutOff = await this.#harness.gateway({ models, redisUrl: this.#proxy.url });
    // A gateway closes in order only with its Redis there.
    this.#harness.onRelease(async () => {
      await this.#proxy.cut();
      await this.#proxy.open();
    });
  }

  async #announced(model: string): Promise<StandInWorker> {
    const worker = new StandInWorker(textModel(model));
    await worker.announce();
    const timer = setInterval(() => void worker.announce().catch(() => undefined), ANNOUNCE_MS);
    this.#harness.onRelease(() => worker.stop());
    this.#harness.onRelease(() => clearInterval(timer));
    return worker;
  }

  /** A model that answers. */
  get served(): Target {
    return { ...addressOf(this.#main), model: this.#names.text };
  }

  /** A model whose queue nobody takes from. */
  get silent(): Target & { queue: string } {
    return { ...this.served, model: this.#names.silent, queue: this.#silent?.queue ?? '' };
  }

  /** A model that should be served and has no worker. */
  get absent(): Target {
    return { ...this.served, model: this.#names.absent };
  }

  get unknown(): Target {
    return { ...this.served, model: 'nope' };
  }

  /** At a gateway whose queues may hold one item, a model whose queue nobody takes from. */
  get full(): Target & { queue: string } {
    return { ...this.silent, ...addressOf(this.#full) };
  }

  /** At a gateway that asks for keys. */
  get keyed(): Target {
    return { ...this.served, ...addressOf(this.#keyed) };
  }

  /** At a gateway that has lost its Redis. */
  async cutOff(): Promise<Target> {
    await this.#proxy.cut();
    return { ...this.served, ...addressOf(this.#cutOff) };
  }

  /** Parts that the worker of {@link served} has answered. */
  get partsAnswered(): number {
    return this.#worker?.answered.length ?? 0;
  }

  /** The part that was answered last. */
  get lastPart(): Part | undefined {
    return this.#worker?.answered.at(-1);
  }

  async release(): Promise<void> {
    await this.#harness.release();
  }
}
