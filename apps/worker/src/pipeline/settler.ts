import { setTimeout as sleep } from 'node:timers/promises';
import {
  CONTRACT_VERSION,
  ERRORS,
  type ItemOutcome,
  joinItems,
  type Logger,
  type ModelDescription,
  type RedisClock,
  type Reply,
  type Stage,
  spans,
  type Tensor,
  type WorkerMetrics,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { HeldItem, HeldJob, HeldPart } from '../intake/held-job.js';
import type { FetchedJob, JobConsumer } from '../intake/job-consumer.js';
import type { ReplyPublisher } from '../replies/reply-publisher.js';
import { inputHash } from '../stalls/input-hash.js';
import type { ItemOutput } from '../tasks/task.js';

/** A reply lives to its part's deadline and this much longer, in ms. */
const REPLY_GRACE_MS = 10_000;
/**
 * Inputs of jobs that failed by our fault are kept so that they can be retried: this long (ms), and only
 * small ones, for failures must not fill Redis. A client's own fault would fail again.
 */
const FAILED_PAYLOAD_MS = 6 * 3600 * 1000;
const MAX_FAILED_PAYLOAD_BYTES = 256 * 1024;
/** Parts of a job that can't be read which are told so, and items in each. */
const MAX_REFUSED_PARTS = 64;
const MAX_REFUSED_ITEMS = 1024;

/** How Redis says that it takes no writes for now: full, read-only, with a full disk, still loading. */
const NOT_NOW = /^(?:OOM|READONLY|MISCONF|LOADING) /;
/** After so long, in ms, it is asked again. */
const AGAIN_MS = 100;

/** From settled items to replies, and from replied parts to finished jobs. */
export class Settler {
  readonly #model: ModelDescription;
  readonly #queue: string;
  readonly #worker: string;
  readonly #redis: Redis;
  readonly #clock: RedisClock;
  readonly #consumer: JobConsumer;
  readonly #publisher: ReplyPublisher;
  readonly #metrics: WorkerMetrics;
  readonly #logger: Logger;

  constructor(parts: {
    model: ModelDescription;
    queue: string;
    worker: string;
    redis: Redis;
    clock: RedisClock;
    consumer: JobConsumer;
    publisher: ReplyPublisher;
    metrics: WorkerMetrics;
    logger: Logger;
  }) {
    this.#model = parts.model;
    this.#queue = parts.queue;
    this.#worker = parts.worker;
    this.#redis = parts.redis;
    this.#clock = parts.clock;
    this.#consumer = parts.consumer;
    this.#publisher = parts.publisher;
    this.#metrics = parts.metrics;
    this.#logger = parts.logger;
  }

  /** Settles an item; with its part's last one the reply goes out, with its job's last reply the job ends. */
  settle(item: HeldItem, outcome: ItemOutcome, output?: ItemOutput[]): void {
    if (item.settled) return;
    this.#metrics.items.inc({ model: this.#model.name, outcome: outcome.status });
    if (!item.part.settle(item, outcome, output)) return;
    this.#finish(item.part).catch((error: Error) => {
      this.abandon(item);
      this.#logger.error({ err: error, requestId: item.part.data.requestId }, 'a reply could not be sent');
    });
  }

  /** Lets an item's job go unanswered: its lock runs out, and it runs again here or elsewhere. */
  abandon(item: HeldItem): void {
    this.#consumer.abandon(item.part.job.fetched);
  }

  async #finish(part: HeldPart): Promise<void> {
    const reply = this.#reply(part);
    await this.#send(reply, part.data);
    for (const { name, ms } of spans(reply.header.stamps)) {
      this.#metrics.stageSeconds.observe({ model: this.#model.name, stage: name }, ms / 1000);
    }
    part.replied = true;
    // Each part gets here once, and only the last one finds all replied: the job is finished once.
    if (part.job.replied) await this.#finishJob(part.job);
  }

  /**
   * Sends a reply. What Redis does not take for now is sent again as long as somebody waits: left to be found stalled,
   * the item would run again, seconds later.
   */
  async #send(reply: Reply, { deadlineAt, replyTo, keepUntil }: HeldPart['data']): Promise<void> {
    const keptUntil = keepUntil ?? deadlineAt + REPLY_GRACE_MS;
    for (;;) {
      const ttlMs = keptUntil - this.#clock.now();
      try {
        await this.#publisher.publish(reply, { queue: this.#queue, gateway: replyTo, ttlMs });
        return;
      } catch (error) {
        if (!NOT_NOW.test((error as Error).message) || this.#clock.now() >= deadlineAt) throw error;
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  #reply(part: HeldPart): Reply {
    const { outcomes, outputs } = this.#joined(part);
    this.#stamp(part, 'postprocessed');
    this.#stamp(part, 'replied');
    return {
      header: {
        v: CONTRACT_VERSION,
        requestId: part.data.requestId,
        firstItem: part.data.firstItem,
        generation: part.data.generation,
        items: outcomes,
        worker: this.#worker,
        model: this.#model.name,
        version: this.#model.version,
        attempt: part.job.fetched.stalled + 1,
        batches: [...part.batches],
        stamps: { ...part.data.stamps, ...part.stamps },
      },
      outputs,
    };
  }

  /** Outcomes in item order, and the outputs of those that are ok as tensors. */
  #joined(part: HeldPart): { outcomes: ItemOutcome[]; outputs: Tensor[] } {
    const first = part.items.find((item) => item.output)?.output ?? [];
    const outcomes = part.items.map((item): ItemOutcome => {
      const outcome = item.outcome ?? { status: 'expired' };
      // Items of one tensor must have one shape; they differ only if the model made them so.
      const alike = outcome.status !== 'ok' || sameShapes(first, item.output ?? []);
      if (alike) return outcome;
      return {
        status: 'failed',
        code: 'inference_failed',
        message: 'The output has another shape than those of the items before it; send it by itself.',
      };
    });
    const answered = part.items.filter((_, i) => outcomes[i]?.status === 'ok');
    const outputs = first.map(({ name, datatype, shape }, k) =>
      joinItems(
        name,
        datatype,
        shape,
        answered.map((item) => item.output?.[k]?.data ?? new Uint8Array(0)),
      ),
    );
    return { outcomes, outputs };
  }

  #stamp(part: HeldPart, stage: Stage): void {
    part.stamp(stage, this.#clock.now());
  }

  async #finishJob(job: HeldJob): Promise<void> {
    const failures = job.parts
      .flatMap((part) => part.items)
      .filter((item) => item.outcome?.status === 'failed');
    const ours = failures.some(
      ({ outcome }) => outcome?.status === 'failed' && ERRORS[outcome.code].fault !== 'client',
    );
    const keep: string[] = [];
    const drop: string[] = [];
    for (const { payload } of job.data.parts) {
      if (!('key' in payload)) continue;
      if (ours && payload.bytes <= MAX_FAILED_PAYLOAD_BYTES) keep.push(payload.key);
      else drop.push(payload.key);
    }
    if (failures.length === 0) await this.#consumer.complete(job.fetched);
    else await this.#consumer.fail(job.fetched, failureText(failures));
    if (drop.length > 0) await this.#redis.unlink(...drop);
    await Promise.all(keep.map((key) => this.#redis.pexpire(key, FAILED_PAYLOAD_MS)));
  }

  /** Fails a job that could not even be read: each part that can be made out gets its answer. */
  async refuse(
    fetched: FetchedJob,
    error: { code: ItemOutcomeFailed['code']; message: string },
  ): Promise<void> {
    const parts = (fetched.job.data as { parts?: unknown } | undefined)?.parts;
    for (const part of Array.isArray(parts) ? parts.slice(0, MAX_REFUSED_PARTS) : []) {
      const address = readAddress(part);
      if (!address) continue;
      const { requestId, firstItem, count, replyTo, generation } = address;
      const failed: ItemOutcome = { status: 'failed', ...error };
      await this.#publisher.publish(
        {
          header: {
            v: CONTRACT_VERSION,
            requestId,
            firstItem,
            generation,
            items: Array.from({ length: count }, () => failed),
            worker: this.#worker,
            model: this.#model.name,
            version: this.#model.version,
            attempt: fetched.stalled + 1,
            batches: [],
            stamps: { replied: this.#clock.now() },
          },
          outputs: [],
        },
        { queue: this.#queue, gateway: replyTo, ttlMs: REPLY_GRACE_MS },
      );
    }
    await this.#consumer.fail(fetched, `${error.code}: ${error.message}`);
  }
}

type ItemOutcomeFailed = Extract<ItemOutcome, { status: 'failed' }>;

function sameShapes(a: readonly ItemOutput[], b: readonly ItemOutput[]): boolean {
  return a.length === b.length && a.every((output, i) => output.shape.join() === b[i]?.shape.join());
}

function failureText(failures: readonly HeldItem[]): string {
  const shown = failures.slice(0, 3).map((item) => {
    const outcome = item.outcome as ItemOutcomeFailed;
    const input = outcome.code === 'item_quarantined' ? ` Its input's SHA-256: ${inputHash(item.raw)}` : '';
    return `item ${item.part.data.firstItem + item.index}: ${outcome.code}: ${outcome.message}${input}`;
  });
  const more = failures.length > shown.length ? `; and ${failures.length - shown.length} more` : '';
  return `${failures.length} failed. ${shown.join('; ')}${more}`;
}

/** What a reply needs, out of a part that is otherwise not valid. */
function readAddress(part: unknown) {
  if (typeof part !== 'object' || part === null) return undefined;
  const { requestId, firstItem, count, replyTo, generation } = part as Record<string, unknown>;
  const sound =
    typeof requestId === 'string' &&
    typeof replyTo === 'string' &&
    Number.isSafeInteger(firstItem) &&
    Number.isSafeInteger(count) &&
    (count as number) > 0 &&
    (count as number) <= MAX_REFUSED_ITEMS;
  if (!sound) return undefined;
  return {
    requestId: requestId as string,
    replyTo: replyTo as string,
    firstItem: firstItem as number,
    count: count as number,
    generation: Number.isSafeInteger(generation) ? (generation as number) : 0,
  };
}
