import { randomUUID } from 'node:crypto';
import {
  BULL_PREFIX,
  cancelKey,
  controlChannel,
  decodeReply,
  encodeFrame,
  type JobData,
  jobId,
  type Part,
  queueName,
  type Reply,
  readReplies,
  replyChannel,
  replyKey,
  type Tensor,
} from '@millrace/shared';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** Enqueues parts and takes their replies as a gateway does, without HTTP. */
export class TestGateway {
  readonly id = randomUUID();
  readonly queue: Queue;
  readonly #waiting = new Map<string, (reply: Reply) => void>();

  constructor(
    readonly model: string,
    readonly redis: Redis,
  ) {
    this.queue = new Queue(this.queueName, { connection: redis, prefix: BULL_PREFIX });
  }

  get queueName(): string {
    return queueName(this.model, '1');
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
      for (const reply of readReplies(message)) {
        if ('stored' in reply) this.#receive(reply.stored);
        else {
          void this.redis
            .getBuffer(replyKey(this.queueName, reply.requestId, reply.firstItem))
            .then((stored) => stored && this.#receive(stored));
        }
      }
    });
    await subscriber.subscribe(replyChannel(this.id));
  }

  #receive(stored: Buffer): void {
    const reply = decodeReply(stored);
    this.#waiting.get(reply.header.requestId)?.(reply);
  }

  /** Job data of one part. */
  job(inputs: Tensor[], part: Partial<Part> = {}): JobData {
    const now = Date.now();
    return {
      v: 1,
      model: this.model,
      version: '1',
      parts: [
        {
          requestId: randomUUID(),
          firstItem: 0,
          count: inputs[0]?.shape[0] ?? 1,
          replyTo: this.id,
          deadlineAt: now + 20_000,
          onDisconnect: 'cancel',
          tenant: 'test',
          priority: 10,
          generation: 0,
          parameters: {},
          stamps: { received: now, enqueued: now },
          payload: { inline: encodeFrame({}, inputs).toString('base64') },
          ...part,
        },
      ],
    };
  }

  /** The reply to a request, once it comes. */
  expect(requestId: string): Promise<Reply> {
    return new Promise<Reply>((resolve) => this.#waiting.set(requestId, resolve));
  }

  /** Adds job data, sound or not, and resolves with the reply to `requestId`. */
  async send(data: JobData | object, requestId: string): Promise<Reply> {
    const reply = this.expect(requestId);
    const { parts } = data as Partial<JobData>;
    await this.queue.add('predict', data, {
      jobId: jobId(requestId, 0),
      priority: parts?.[0]?.priority ?? 10,
    });
    return reply;
  }

  /** One part of these inputs; resolves with its reply. */
  predict(inputs: Tensor[], part: Partial<Part> = {}): Promise<Reply> {
    const data = this.job(inputs, part);
    return this.send(data, data.parts[0]?.requestId ?? '');
  }

  async cancel(requestId: string): Promise<void> {
    await this.redis.set(cancelKey(this.queueName, requestId), '1', 'PX', 20_000);
    await this.redis.publish(controlChannel(this.queueName), requestId);
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}
