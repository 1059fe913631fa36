/**
 * What happened in a run, all of it as data, so that a verdict can be given, and given again, from it alone.
 * Times are milliseconds since the run began, by this process's monotonic clock.
 */
export interface History {
  requests: RequestRecord[];
  /** Files of lines, one after the other. */
  batches: BatchRun[];
  faults: FaultRecord[];
  /** Deaths of processes that no fault brought about. */
  deaths: Death[];
  /** Load without faults, before the first of them: the throughput that must come back. */
  calm: Span;
  /** What was left behind once every request was over; each one a sentence. */
  leftovers: string[];
}

export interface Span {
  from: number;
  to: number;
}

export interface RequestRecord {
  /** The same at a retry; sent as `Idempotency-Key`. */
  readonly id: string;
  readonly kind: string;
  /** By item, which answer it must get: by name, or one of several names. */
  readonly asked: readonly (string | readonly string[])[];
  readonly sentAt: number;
  readonly waitMs: number;
  /** The first attempt got no answer because its connection was refused or broke; the second one went elsewhere. */
  retried?: { at: number; why: string };
  endedAt?: number;
  /** It was sent with `Prefer: respond-async`. */
  kept?: Kept;
  outcome: Outcome;
}

/** What a client did to get the answer of a request that outlives it. */
export interface Kept {
  /** When it was told that its answer can be collected; from then on nothing excuses that it can't. */
  acceptedAt?: number;
  failedCalls: FailedCall[];
}

/** A call that did not bring what it was to bring, and was made again. */
export interface FailedCall extends Span {
  /** An error code of ours; `refused` and `broken` of connections; `nothing` where it was waited for in vain. */
  readonly code: string;
}

/** A batch from its upload to the download of what became of its lines. */
export interface BatchRun {
  readonly id: string;
  readonly lines: number;
  readonly from: number;
  to?: number;
  /** Its last state, or what its client could not get past. */
  end: string;
  failedCalls: FailedCall[];
  /** Of its files, once they are there. */
  found?: BatchFindings;
}

/** How the files of a batch differ from what they must be. All are numbers of lines. */
export interface BatchFindings {
  duplicated: number;
  missing: number;
  outOfOrder: number;
  /** With another answer than they must get, or under another name. */
  wrong: number;
  /** The first few, a sentence each. */
  told: string[];
}

export type Outcome =
  /** Every item's answer by the name that the judge knows it by. */
  | { is: 'values'; answered: readonly string[] }
  | { is: 'error'; status: number; code: string }
  /** No attempt was answered: its connection was refused or broke. */
  | { is: 'broken'; why: string }
  /** The client went away on purpose. */
  | { is: 'vanished' }
  /** The client gave up waiting, long after the deadline. */
  | { is: 'nothing' };

export interface FaultRecord extends Span {
  readonly name: string;
  /** The process or part it was done to. */
  target: string;
  /** Why it did not do what it should have; absent: it fired. */
  failed?: string;
}

export interface Death {
  readonly process: string;
  readonly at: number;
  readonly how: string;
}

/** What a fault may do to requests that meet it. */
export interface Excuse {
  /** Error codes that it may cause; of connections: `refused` and `broken`. */
  readonly codes: readonly string[];
  /** It takes Redis away from everybody or from a gateway: requests meanwhile need not get values. */
  readonly outage: boolean;
  /** How long after its end it may still be felt. */
  readonly recoveryMs: number;
  /** Whether processes may die of it by themselves. */
  readonly kills?: boolean;
}

/** Statuses that refuse a request at the door: it was never accepted. */
export const REFUSALS: readonly number[] = [429, 503];
