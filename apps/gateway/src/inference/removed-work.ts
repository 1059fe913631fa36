import {
  CONTRACT_VERSION,
  encodeReply,
  type JobData,
  type Part,
  packReplies,
  publishedReply,
  type RedisClock,
  replyChannel,
  replyKey,
} from '@millrace/shared';
import type { Redis } from 'ioredis';

/** The reply to a part outlives its deadline by this, in ms, as a worker's does. */
const REPLY_GRACE_MS = 10_000;

/**
 * Answers a part whose job was removed from its queue, in the workers' stead: all its items are cancelled. Where
 * another answer stands, that counts.
 * @param by id of the process that removed it.
 */
export async function answerRemoved(
  { redis, clock }: { redis: Redis; clock: RedisClock },
  queue: string,
  { model, version }: JobData,
  part: Part,
  by: string,
): Promise<void> {
  const { requestId, firstItem, count, generation, replyTo, deadlineAt, stamps } = part;
  const now = clock.now();
  const header = {
    v: CONTRACT_VERSION,
    requestId,
    firstItem,
    generation,
    items: Array.from({ length: count }, () => ({ status: 'cancelled' as const })),
    worker: by,
    model,
    version,
    attempt: 1,
    batches: [],
    stamps: { ...stamps, replied: now },
  };
  const stored = encodeReply({ header, outputs: [] });
  const lifeMs = Math.ceil(Math.max(0, deadlineAt - now) + REPLY_GRACE_MS);
  const won = await redis.set(replyKey(queue, requestId, firstItem), stored, 'PX', lifeMs, 'NX');
  if (won === null) return;
  await redis.publish(replyChannel(replyTo), packReplies([publishedReply(stored, header, replyTo)]));
}
