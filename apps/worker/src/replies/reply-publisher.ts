import { encodeReply, publishedReply, type Reply, replyChannel, replyKey } from '@millrace/shared';
import type { Redis } from 'ioredis';

/**
 * Stores replies and publishes those that were stored, in one message: the first stored reply of a part
 * wins, and only one of a higher generation (an administrator's retry) may replace it.
 *
 * KEYS[1..n]  reply keys, all of one hash tag
 * ARGV[1]     the gateway's channel
 * ARGV[2..]   for each key four values:
 *             stored reply: uint32 little-endian generation, then the frame
 *             time to live, ms
 *             generation
 *             what to publish in place of the stored reply; empty: itself
 * Returns for each key 1 when it was stored, 0 when an earlier one stands.
 */
const PUBLISH_REPLIES = `
local won, message = {}, {}
for i, key in ipairs(KEYS) do
  local at = 4 * i - 2
  local stored = redis.call('SET', key, ARGV[at], 'NX', 'PX', ARGV[at + 1])
  if not stored then
    local head = redis.call('GETRANGE', key, 0, 3)
    if #head == 4 and struct.unpack('<I4', head) < tonumber(ARGV[at + 2]) then
      stored = redis.call('SET', key, ARGV[at], 'PX', ARGV[at + 1])
    end
  end
  won[i] = stored and 1 or 0
  if stored then
    local published = ARGV[at + 3] == '' and ARGV[at] or ARGV[at + 3]
    message[#message + 1] = struct.pack('<I4', #published)
    message[#message + 1] = published
  end
end
if #message > 0 then redis.call('PUBLISH', ARGV[1], table.concat(message)) end
return won
`;

type WithScript = Redis & {
  millracePublishReplies(keys: number, ...keysAndArguments: (string | number | Buffer)[]): Promise<number[]>;
};

/** Where a reply goes and how long it is kept. */
export interface ReplyAddress {
  queue: string;
  /** Id of the gateway that waits. */
  gateway: string;
  ttlMs: number;
}

interface Waiting {
  reply: Reply;
  to: ReplyAddress;
  resolve(won: boolean): void;
  reject(error: Error): void;
}

/** One message to one gateway holds no more replies than this, so that none waits long for its fellows. */
const MOST_IN_MESSAGE = 64;

export class ReplyPublisher {
  readonly #redis: WithScript;
  /** Replies of this turn of the event loop, by queue and gateway. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(redis: Redis) {
    redis.defineCommand('millracePublishReplies', { lua: PUBLISH_REPLIES });
    this.#redis = redis as WithScript;
  }

  /**
   * @returns whether this reply was the one stored. Replies of one turn of the event loop to one gateway
   * travel together: a run answers many at once.
   */
  publish(reply: Reply, to: ReplyAddress): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const together = `${to.queue} ${to.gateway}`;
      const waiting = this.#waiting.get(together);
      const entry = { reply, to, resolve, reject };
      if (waiting) waiting.push(entry);
      else {
        this.#waiting.set(together, [entry]);
        setImmediate(() => this.#flush(together));
      }
    });
  }

  #flush(together: string): void {
    const waiting = this.#waiting.get(together) ?? [];
    this.#waiting.delete(together);
    for (let at = 0; at < waiting.length; at += MOST_IN_MESSAGE)
      void this.#send(waiting.slice(at, at + MOST_IN_MESSAGE));
  }

  async #send(entries: readonly Waiting[]): Promise<void> {
    const [first] = entries;
    if (!first) return;
    const keys: string[] = [];
    const values: (string | number | Buffer)[] = [];
    for (const { reply, to } of entries) {
      const { requestId, firstItem, generation } = reply.header;
      const stored = encodeReply(reply);
      const published = publishedReply(stored, reply.header, to.gateway);
      keys.push(replyKey(to.queue, requestId, firstItem));
      values.push(
        stored,
        Math.max(1, Math.ceil(to.ttlMs)),
        generation,
        published === stored ? '' : published,
      );
    }
    try {
      const channel = replyChannel(first.to.gateway);
      const won = await this.#redis.millracePublishReplies(keys.length, ...keys, channel, ...values);
      for (const [i, { resolve }] of entries.entries()) resolve(won[i] === 1);
    } catch (error) {
      for (const { reject } of entries) reject(error as Error);
    }
  }
}
