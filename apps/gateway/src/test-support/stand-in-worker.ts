import { randomUUID } from 'node:crypto';
import {
  announce,
  BULL_PREFIX,
  bytesElements,
  bytesTensor,
  CONTRACT_VERSION,
  decodeFrame,
  encodeReply,
  type ItemOutcome,
  joinItems,
  type ModelDescription,
  type Part,
  packReplies,
  parseJobData,
  publishedReply,
  queueName,
  type Reply,
  replyChannel,
  replyKey,
  splitItems,
  type Tensor,
  withdraw,
} from '@millrace/shared';
import { type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { DIMENSIONS } from './models.js';
import { testRedis } from './redis.js';

/** What the stand-in does to an item beside answering it. */
export type Verdict = (text: string, index: number) => ItemOutcome;

export interface StandInOptions {
  /** How items end; absent: all ok. */
  verdict?: Verdict;
  /** Called before a part is answered; holds the answer while it is pending. */
  before?: (part: Part) => Promise<void> | void;
  /** Changes the reply before it is stored. */
  alter?: (reply: Reply) => Reply;
  /** Stores replies without publishing them. */
  mute?: boolean;
}

/**
 * A worker that speaks the whole contract over real Redis and BullMQ, and computes nothing: an embedding is
 * told from its text (token ids: from `1 2 3`), tensors come back as they went.
 */
export class StandInWorker {
  readonly id = randomUUID();
  readonly answered: Part[] = [];
  readonly #redis: Redis;
  readonly #model: ModelDescription;
  readonly #options: StandInOptions;
  #worker: Worker | undefined;
  #renew: NodeJS.Timeout | undefined;

  constructor(model: ModelDescription, options: StandInOptions = {}) {
    this.#model = model;
    this.#options = options;
    this.#redis = testRedis('stand-in');
  }

  get queue(): string {
    return queueName(this.#model.name, this.#model.version);
  }

  /** Announces the model and serves it. */
  async start(): Promise<this> {
    await this.announce();
    this.#renew = setInterval(() => void this.announce().catch(() => undefined), 500);
    this.#worker = new Worker(this.queue, (job) => this.#answer(job), {
      connection: this.#redis,
      prefix: BULL_PREFIX,
      concurrency: 8,
      drainDelay: 1,
    });
    this.#worker.on('error', () => undefined);
    await this.#worker.waitUntilReady();
    return this;
  }

  /** Announces the model without serving it: its queue only grows. */
  async announce(state: 'serving' | 'warming' = 'serving'): Promise<void> {
    const worker = {
      id: this.id,
      host: 'test',
      pid: process.pid,
      state,
      contractVersions: [CONTRACT_VERSION],
      startedAt: Date.now(),
      models: [this.#model],
    };
    await announce(this.#redis, worker, Date.now());
  }

  /** Fetches nothing until {@link resume}; it stays announced. */
  async pause(): Promise<void> {
    await this.#worker?.pause();
  }

  resume(): void {
    void this.#worker?.resume();
  }

  async stop(): Promise<void> {
    clearInterval(this.#renew);
    await this.#worker?.close(true);
    await withdraw(this.#redis, this.id).catch(() => undefined);
    this.#redis.disconnect();
  }

  async #answer(job: Job): Promise<null> {
    const fetched = Date.now();
    for (const part of parseJobData(job.data).parts) {
      await this.#options.before?.(part);
      const reply = await this.#reply(part, fetched);
      const stored = encodeReply(this.#options.alter?.(reply) ?? reply);
      const { requestId, firstItem, replyTo } = part;
      await this.#redis.set(replyKey(this.queue, requestId, firstItem), stored, 'PX', 60_000);
      this.answered.push(part);
      if (this.#options.mute) continue;
      await this.#redis.publish(replyChannel(replyTo), packReplies([publishedReply(stored, part, replyTo)]));
    }
    return null;
  }

  async #reply(part: Part, fetched: number): Promise<Reply> {
    const inputs = await this.#inputs(part);
    const texts = inputs[0]?.datatype === 'BYTES' ? bytesElements(inputs[0]).map((b) => Buffer.from(b)) : [];
    const items: ItemOutcome[] = [];
    for (let i = 0; i < part.count; i++) {
      const verdict = this.#options.verdict;
      items.push(verdict ? verdict(texts[i]?.toString() ?? '', part.firstItem + i) : { status: 'ok' });
    }
    const ok = items.flatMap((item, index) => (item.status === 'ok' ? [index] : []));
    const now = Date.now();
    return {
      header: {
        v: CONTRACT_VERSION,
        requestId: part.requestId,
        firstItem: part.firstItem,
        generation: part.generation,
        items,
        worker: this.id,
        model: this.#model.name,
        version: this.#model.version,
        attempt: 1,
        batches: [randomUUID()],
        stamps: {
          ...part.stamps,
          fetched,
          batched: fetched,
          preprocessed: now,
          inferred: now,
          postprocessed: now,
          replied: now,
        },
      },
      outputs: this.#outputs(part, inputs, texts, ok),
    };
  }

  #outputs(part: Part, inputs: readonly Tensor[], texts: readonly Buffer[], ok: readonly number[]): Tensor[] {
    if (this.#model.task !== 'text-embedding') return inputs.map((tensor) => echo(tensor, ok));
    const asked = ok.map((index) => texts[index] ?? Buffer.alloc(0));
    if (part.operation === 'tokenize') {
      const flag = part.parameters.add_special_tokens;
      return [
        bytesTensor(
          'tokens',
          asked.map((text) => JSON.stringify([{ text: text.toString(), flag }])),
        ),
      ];
    }
    if (part.operation === 'detokenize') {
      const flag = part.parameters.skip_special_tokens;
      return [
        bytesTensor(
          'text',
          asked.map((ids) => `${idsOf(ids).join(' ')} ${flag}`),
        ),
      ];
    }
    const read = part.operation === 'embed-tokens' ? asked.map((ids) => idsOf(ids).join(' ')) : asked;
    return [embed(read.map(String))];
  }

  async #inputs(part: Part): Promise<Tensor[]> {
    const { payload } = part;
    if ('inline' in payload) return decodeFrame(Buffer.from(payload.inline, 'base64')).tensors;
    const frame = await this.#redis.getBuffer(payload.key);
    if (!frame) throw new Error(`There is no payload at ${payload.key}.`);
    return decodeFrame(frame).tensors;
  }
}

/** What the stand-in answers to a text. */
export function embeddingOf(text: string): number[] {
  const bytes = Buffer.from(text);
  let sum = 0;
  for (const byte of bytes) sum = (sum * 31 + byte) % 1_000_003;
  return [bytes.byteLength / 1024, sum / 1_000_003, -sum / 2_000_006, 1];
}

/** Token ids of one BYTES element. */
function idsOf(element: Buffer): number[] {
  return Array.from({ length: element.byteLength / 4 }, (_, i) => element.readUInt32LE(4 * i));
}

function embed(texts: readonly string[]): Tensor {
  const numbers = texts.flatMap(embeddingOf);
  const data = new Uint8Array(new Float32Array(numbers).buffer);
  return { name: 'embedding', datatype: 'FP32', shape: [texts.length, DIMENSIONS], data };
}

function echo(tensor: Tensor, ok: readonly number[]): Tensor {
  const cuts = splitItems(tensor);
  const kept = ok.map((index) => cuts[index] ?? new Uint8Array());
  return joinItems(`${tensor.name}_out`, tensor.datatype, tensor.shape.slice(1), kept);
}
