import { setTimeout as delay } from 'node:timers/promises';
import {
  decodeFrame,
  decodeReply,
  decodeReplyHeader,
  isErrorCode,
  type Logger,
  MillraceError,
  type Reply,
  type ReplyHeader,
  replyKey,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { readValue } from './large-values.js';

/** Keys in one command, so that a long list doesn't hold up Redis. */
const CHUNK = 200;
/** More than the header of a usual part's reply takes. */
const HEADER_BYTES = 16 * 1024;
/** How long received replies gather before they are unlinked together, in ms. */
const UNLINK_MS = 100;

export interface ReplyAddress {
  requestId: string;
  firstItem: number;
}

/** The stored replies: reading those whose message was missed, and clearing away those received. */
export class ReplyStore {
  readonly #redis: Redis;
  readonly #logger: Logger;
  /** Keys to unlink by queue: keys of two queues may lie on two nodes of a cluster. */
  readonly #received = new Map<string, string[]>();
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#logger = logger;
  }

  /** The stored replies of one queue's parts, as they lie in Redis; undefined where there is none. */
  async read(queue: string, parts: readonly ReplyAddress[]): Promise<(Buffer | undefined)[]> {
    const found: (Buffer | undefined)[] = [];
    for (let i = 0; i < parts.length; i += CHUNK) {
      const keys = parts.slice(i, i + CHUNK).map((p) => replyKey(queue, p.requestId, p.firstItem));
      for (const value of await this.#redis.mgetBuffer(keys)) found.push(value ?? undefined);
    }
    return found;
  }

  /**
   * What the stored replies say of their items, without their outputs; undefined where there is none, or where that
   * can't be told by its first bytes.
   */
  async readHeaders(queue: string, parts: readonly ReplyAddress[]): Promise<(ReplyHeader | undefined)[]> {
    const starts = await Promise.all(
      parts.map((p) =>
        this.#redis.getrangeBuffer(replyKey(queue, p.requestId, p.firstItem), 0, HEADER_BYTES - 1),
      ),
    );
    return starts.map((start) => {
      try {
        return decodeReplyHeader(start);
      } catch {
        return undefined;
      }
    });
  }

  /** One stored reply of any size; undefined where there is none, or where another is just taking its place. */
  async readLarge(queue: string, { requestId, firstItem }: ReplyAddress): Promise<Buffer | undefined> {
    return await readValue(this.#redis, replyKey(queue, requestId, firstItem));
  }

  /** Notes that a part's reply was received; its key goes with the next bulk. */
  received(queue: string, requestId: string, firstItem: number): void {
    const key = replyKey(queue, requestId, firstItem);
    const keys = this.#received.get(queue);
    if (keys) keys.push(key);
    else this.#received.set(queue, [key]);
    this.#timer ??= setTimeout(() => void this.flush(), UNLINK_MS);
  }

  /** Unlinks what is left, not waiting for a Redis that hangs. */
  async close(): Promise<void> {
    await Promise.race([this.flush(), delay(UNLINK_MS, undefined, { ref: false })]);
  }

  /** Unlinks what was received. A key that is missed here expires by itself. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unlinks: Promise<unknown>[] = [];
    for (const keys of this.#received.values()) {
      for (let i = 0; i < keys.length; i += CHUNK) unlinks.push(this.#redis.unlink(keys.slice(i, i + CHUNK)));
    }
    this.#received.clear();
    for (const outcome of await Promise.allSettled(unlinks)) {
      if (outcome.status === 'rejected') this.#logger.debug({ err: outcome.reason }, 'replies not unlinked');
    }
  }
}

/** A reply that can't be used, and the request it was meant for, if that much can be read. */
export interface UnusableReply {
  error: MillraceError;
  requestId?: string;
}

/** Decodes a stored reply without throwing. */
export function tryDecodeReply(stored: Buffer): Reply | UnusableReply {
  try {
    return decodeReply(stored);
  } catch (cause) {
    const mismatch = cause instanceof MillraceError && isErrorCode(cause.code) ? cause.code : 'internal';
    const code = mismatch === 'contract_version_unsupported' ? mismatch : 'internal';
    const requestId = requestIdOf(stored);
    return {
      error: new MillraceError(code, undefined, {}, { cause }),
      ...(requestId === undefined ? {} : { requestId }),
    };
  }
}

/** The request id is looked for in a reply of any version: it is what lets its client be told. */
function requestIdOf(stored: Buffer): string | undefined {
  try {
    const { requestId } = decodeFrame(stored.subarray(4)).header;
    return typeof requestId === 'string' ? requestId : undefined;
  } catch {
    return undefined;
  }
}
