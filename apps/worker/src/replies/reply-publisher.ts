import { encodeReply, type Reply, replyChannel, replyKey, replyMessage } from '@millrace/shared';
import type { Redis } from 'ioredis';

/**
 * Stores a reply and publishes it only if it was stored: the first stored reply wins, and only one of a
 * higher generation (an administrator's retry) may replace it.
 *
 * KEYS[1]  reply key
 * ARGV[1]  stored reply: uint32 little-endian generation, then the frame
 * ARGV[2]  time to live, ms
 * ARGV[3]  the gateway's channel
 * ARGV[4]  generation
 * ARGV[5]  what to publish in place of the stored reply; empty: itself
 * Returns 1 when it was stored, 0 when an earlier one stands.
 */
const PUBLISH_REPLY = `
local stored = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if not stored then
  local head = redis.call('GETRANGE', KEYS[1], 0, 3)
  if #head < 4 or struct.unpack('<I4', head) >= tonumber(ARGV[4]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
redis.call('PUBLISH', ARGV[3], ARGV[5] == '' and ARGV[1] or ARGV[5])
return 1
`;

type WithScript = Redis & {
  millracePublishReply(
    key: string,
    stored: Buffer,
    ttlMs: number,
    channel: string,
    generation: number,
    instead: string,
  ): Promise<number>;
};

/** Where a reply goes and how long it is kept. */
export interface ReplyAddress {
  queue: string;
  /** Id of the gateway that waits. */
  gateway: string;
  ttlMs: number;
}

export class ReplyPublisher {
  readonly #redis: WithScript;

  constructor(redis: Redis) {
    redis.defineCommand('millracePublishReply', { numberOfKeys: 1, lua: PUBLISH_REPLY });
    this.#redis = redis as WithScript;
  }

  /** @returns whether this reply was the one stored. Replies of one turn of the event loop share a pipeline. */
  async publish(reply: Reply, to: ReplyAddress): Promise<boolean> {
    const { requestId, firstItem, generation } = reply.header;
    const stored = encodeReply(reply);
    const message = replyMessage(stored, requestId, firstItem);
    const done = await this.#redis.millracePublishReply(
      replyKey(to.queue, requestId, firstItem),
      stored,
      Math.max(1, Math.ceil(to.ttlMs)),
      replyChannel(to.gateway),
      generation,
      typeof message === 'string' ? message : '',
    );
    return done === 1;
  }
}
