import { type ErrorCode, isErrorCode } from '../errors/codes.js';
import { MillraceError } from '../errors/millrace-error.js';
import { decodeFrame, decodeFrameHeader, encodeFrame } from './frame.js';
import { ANY_GATEWAY } from './keys.js';
import type { Stamps } from './stamps.js';
import type { Tensor } from './tensor.js';

/** How an item ended. Nothing is dropped silently: each item of a part has one of these. */
export type ItemOutcome =
  | { status: 'ok' /** The input was cut to the model's limit. */; truncated?: true; tokens?: number }
  | { status: 'failed'; code: ErrorCode; message: string }
  | { status: 'expired' }
  | { status: 'cancelled' };

export interface ReplyHeader {
  v: number;
  requestId: string;
  firstItem: number;
  generation: number;
  /** One per item of the part, in order. */
  items: ItemOutcome[];
  /** Id of the worker process that answered. */
  worker: string;
  model: string;
  version: string;
  /** 1, or more when the job was run again after a stall. */
  attempt: number;
  /** Ids of the groups in which the items ran. */
  batches: string[];
  stamps: Stamps;
}

/** A part's reply. The first axis of each output counts the items whose status is ok, in item order. */
export interface Reply {
  header: ReplyHeader;
  outputs: Tensor[];
}

/** Stored replies over this size are not published; only their address is. */
const MAX_PUBLISHED_BYTES = 64 * 1024;
const GENERATION_BYTES = 4;
const REFERENCE = 'ref:';

/**
 * What is stored under the reply key: uint32 little-endian generation, then the frame. The generation
 * stands in front so that the publishing script can compare it without parsing JSON.
 */
export function encodeReply(reply: Reply): Buffer {
  const frame = encodeFrame(reply.header, reply.outputs);
  const prefix = Buffer.allocUnsafe(GENERATION_BYTES);
  prefix.writeUInt32LE(reply.header.generation, 0);
  return Buffer.concat([prefix, frame]);
}

/** The generation of a stored reply, told by its first bytes; undefined where none is stored. */
export function replyGeneration(head: Buffer | null | undefined): number | undefined {
  return head && head.byteLength >= GENERATION_BYTES ? head.readUInt32LE(0) : undefined;
}

/** @throws MillraceError `invalid_input` or `contract_version_unsupported` when it can't be read. */
export function decodeReply(stored: Uint8Array): Reply {
  const { header, tensors } = decodeFrame(stored.subarray(GENERATION_BYTES));
  return { header: readHeader(header), outputs: tensors };
}

/**
 * What a stored reply says of its items, told by its first bytes.
 * @throws MillraceError as {@link decodeReply}, also where the header is longer than what is there.
 */
export function decodeReplyHeader(start: Uint8Array): ReplyHeader {
  return readHeader(decodeFrameHeader(start.subarray(GENERATION_BYTES)));
}

function readHeader(header: Record<string, unknown>): ReplyHeader {
  const h = header as unknown as ReplyHeader;
  if (h.v !== 1) throw new MillraceError('contract_version_unsupported');
  const sound =
    typeof h.requestId === 'string' &&
    Number.isSafeInteger(h.firstItem) &&
    Array.isArray(h.items) &&
    h.items.every(isOutcome) &&
    typeof h.stamps === 'object' &&
    h.stamps !== null;
  if (!sound) throw new MillraceError('invalid_input', 'The reply header is not valid.', { field: 'reply' });
  return h;
}

function isOutcome(item: Partial<ItemOutcome> | null): boolean {
  if (item?.status === 'failed') return isErrorCode(item.code);
  return item?.status === 'ok' || item?.status === 'expired' || item?.status === 'cancelled';
}

/**
 * What is published of one stored reply: itself, or `ref:REQUEST:FIRSTITEM` for a large one, and for one that
 * every gateway hears.
 */
export function publishedReply(
  stored: Buffer,
  { requestId, firstItem }: Pick<ReplyHeader, 'requestId' | 'firstItem'>,
  replyTo: string,
): Buffer {
  return stored.byteLength <= MAX_PUBLISHED_BYTES && replyTo !== ANY_GATEWAY
    ? stored
    : Buffer.from(`${REFERENCE}${requestId}:${firstItem}`, 'latin1');
}

export type PublishedReply = { stored: Buffer } | { requestId: string; firstItem: number };

/**
 * One message carries the replies of one gateway that became ready together, each behind its byte length
 * (uint32 little-endian). The publishing script writes the same.
 */
export function packReplies(published: readonly Buffer[]): Buffer {
  return Buffer.concat(
    published.flatMap((entry) => {
      const length = Buffer.allocUnsafe(4);
      length.writeUInt32LE(entry.byteLength, 0);
      return [length, entry];
    }),
  );
}

/** Reads a message: for each reply itself (a view), or where it is stored. What is cut short is left out. */
export function readReplies(message: Buffer): PublishedReply[] {
  const replies: PublishedReply[] = [];
  for (let at = 0; at + 4 <= message.byteLength; ) {
    const end = at + 4 + message.readUInt32LE(at);
    if (end > message.byteLength) break;
    replies.push(readPublished(message.subarray(at + 4, end)));
    at = end;
  }
  return replies;
}

function readPublished(entry: Buffer): PublishedReply {
  if (entry.byteLength >= 256 || entry.toString('latin1', 0, REFERENCE.length) !== REFERENCE) {
    return { stored: entry };
  }
  const [, requestId = '', firstItem = ''] = entry.toString('latin1').split(':');
  return { requestId, firstItem: Number(firstItem) };
}
