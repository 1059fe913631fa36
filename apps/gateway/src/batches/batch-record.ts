import type { ErrorCode } from '@millrace/shared';

/**
 * States of a batch: OpenAI's, and `paused`, which is ours. `validating` is one that has not begun, `finalizing` one
 * whose lines are all written.
 */
export const BATCH_STATES = [
  'validating',
  'in_progress',
  'finalizing',
  'paused',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchState = (typeof BATCH_STATES)[number];

const ENDED = new Set<BatchState>(['completed', 'failed', 'expired', 'cancelled']);

/** An object of the store that holds a stretch of a file. */
export interface Segment {
  key: string;
  bytes: number;
}

/**
 * How far a batch has got: these lines and no others are in its output or error file. Whoever goes on begins behind
 * them; what was written later belongs to nobody and is removed.
 */
export interface Checkpoint {
  /** Lines of the input that are done, and the offset behind them in what the input unpacks to, in bytes. */
  line: number;
  end: number;
  completed: number;
  failed: number;
  output: Segment[];
  errors: Segment[];
}

/** Why a batch failed, or is held up. */
export interface BatchFault {
  code: ErrorCode;
  message: string;
}

/** All that any gateway needs to run a batch, or to tell of it. Times in epoch ms of Redis's clock. */
export interface BatchRecord {
  v: 1;
  /** `batch_` and 32 hexadecimal digits. */
  id: string;
  /** Name of the API key whose it is. */
  owner: string;
  /** Address that a line without one of its own is for. */
  endpoint: string;
  inputFileId: string;
  completionWindow: string;
  metadata?: Record<string, string>;
  createdAt: number;
  /** End of its completion window: what has not been run by then is not run. */
  expiresAt: number;
  /** How long its output is kept, in ms from when that is written. */
  outputKeepMs: number;
  state: BatchState;
  /** When it came to each state that it has been in, the last time. */
  since: Partial<Record<BatchState, number>>;
  /** What it ends as, once all its lines are written or it has failed. */
  outcome?: 'completed' | 'expired' | 'failed';
  /** Why it failed. */
  faults?: BatchFault[];
  /** What holds it up, while something does. */
  heldUp?: BatchFault;
  /** Lines of the input, once they are counted. */
  total?: number;
  checkpoint: Checkpoint;
  /** Ids of the files that it writes; they are there once it has ended. */
  outputFileId: string;
  errorFileId: string;
  /** Counts its runners: only the newest may write. */
  epoch: number;
  /** Counts its jobs in the queue of batches: each has an id of its own. */
  run: number;
}

export function hasEnded({ state }: Pick<BatchRecord, 'state'>): boolean {
  return ENDED.has(state);
}

/** The record in another state from `now` on. One that goes on after a pause has been in progress since it began. */
export function inState(record: BatchRecord, state: BatchState, now: number): BatchRecord {
  const since = state === 'in_progress' ? (record.since.in_progress ?? now) : now;
  return { ...record, state, since: { ...record.since, [state]: since } };
}

/** Id of a batch's job in the queue of batches. */
export function batchJobId({ id, run }: Pick<BatchRecord, 'id' | 'run'>): string {
  return `${id}.${run}`;
}

/** @returns undefined for what is no record, or one of a later version. */
export function readBatch(json: string | null | undefined): BatchRecord | undefined {
  if (!json) return undefined;
  try {
    const record = JSON.parse(json) as BatchRecord;
    return record.v === 1 ? record : undefined;
  } catch {
    return undefined;
  }
}
