import { createHash } from 'node:crypto';
import type { ModelDescription, PriorityClass } from '@millrace/shared';

/** One job of a durable request: which of its items, and the id of the BullMQ job that carries them. */
export interface RecordedPart {
  firstItem: number;
  count: number;
  jobId: string;
  /** Which reply counts, where an administrator sent it again: those before are of a lower generation. */
  generation?: number;
}

/**
 * All that any gateway needs to gather, list or cancel a durable request: written before its 202. Its state is not
 * in here: it is told by the queue and by the stored replies, so that it can't contradict them.
 */
export interface JobRecord {
  v: 1;
  /** The request's id. */
  id: string;
  /** Name of the API key whose it is. */
  owner: string;
  /** Name of the writer that answers as the door it came through does, and what that was asked. */
  writer: string;
  asked: unknown;
  queue: string;
  model: ModelDescription;
  itemCount: number;
  /** How messages name the first item where that is not `inputs[0]`. */
  firstField?: string | undefined;
  parts: RecordedPart[];
  priority: PriorityClass;
  partial: boolean;
  /** Times in epoch ms of Redis's clock. */
  receivedAt: number;
  notBefore?: number;
  deadlineAt: number;
  /** When its results go. */
  keepUntil: number;
  /** What it counts for against its owner's bytes: its inputs, and its outputs as far as their shapes are known. */
  bytes: number;
  /** Who is told of its end: a URL. */
  callback?: string;
  /** When its owner took it back. */
  cancelledAt?: number;
}

/** An API key's name as it stands in keys of Redis. */
export function ownerHash(owner: string): string {
  return createHash('sha256').update(owner).digest('base64url').slice(0, 22);
}

/** @returns undefined for what is no record, or one of a later version. */
export function readRecord(json: string | null): JobRecord | undefined {
  if (json === null) return undefined;
  try {
    const record = JSON.parse(json) as JobRecord;
    return record.v === 1 ? record : undefined;
  } catch {
    return undefined;
  }
}
