/**
 * What happened in a run, all of it as data, so that a verdict can be given, and given again, from it alone.
 * Times are milliseconds since the run began, by this process's monotonic clock.
 */
export interface History {
  requests: RequestRecord[];
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
  outcome: Outcome;
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
