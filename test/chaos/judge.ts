import { Explanations } from './explanations.js';
import {
  type Excuse,
  type FailedCall,
  type History,
  REFUSALS,
  type RequestRecord,
  type Span,
} from './history.js';
import { type BatchTotals, judgeBatches } from './judge-batches.js';
import { misfit } from './misfit.js';
import { recovery } from './recovery.js';

/** An answer may come this long after its deadline. */
const LATE_MS = 1000;
/** Outside of outages of Redis, this share of accepted requests must get values. */
const LEAST_VALUES = 0.995;
const SHOWN_PROBLEMS = 20;

export interface Verdict {
  verdict: 'pass' | 'fail';
  requests: number;
  accepted: number;
  values: number;
  refused: number;
  retried: number;
  vanished: number;
  /** Accepted, then given an error, or a broken connection, that no fault of that time explains. */
  lost: number;
  wrong: number;
  unanswered: number;
  late: number;
  /** Refused though no fault of that time explains it: requests, and calls that collect results or drive batches. */
  refusedWithoutCause: number;
  /** Of the requests with `Prefer: respond-async`: answered 202, collected with their values, and neither. */
  async: { accepted: number; collected: number; lost: number };
  batches: BatchTotals;
  /** Share of values among accepted requests that met no outage of Redis. */
  valuesShare: number;
  /** Right answers a second before the faults, and the best after them. */
  throughput: { before: number; after: number };
  /** How often each fault fired, and times a minute. */
  faults: Record<string, { count: number; perMinute: number }>;
  leftovers: number;
  problems: string[];
}

/** Judges a history by what each fault of it may do to requests. Every fault of `excuses` must have fired. */
export function judge(history: History, excuses: Readonly<Record<string, Excuse>>): Verdict {
  const problems: string[] = [];
  const explanations = new Explanations(history.faults, excuses);
  const counts = { accepted: 0, values: 0, refused: 0, retried: 0, vanished: 0 };
  const faulty = { lost: 0, wrong: 0, unanswered: 0, late: 0, refusedWithoutCause: 0 };
  const kept = { accepted: 0, collected: 0, lost: 0 };
  const undisturbed = { accepted: 0, values: 0 };
  const fault = (kind: keyof typeof faulty, what: string, span: Span, why: string): void => {
    faulty[kind]++;
    problems.push(`${kind}: ${what} ${why}; faults it met: ${explanations.told(span)}`);
  };
  const judgeCalls = (what: string, calls: readonly FailedCall[]): void => {
    for (const call of calls) {
      if (explanations.explain(call, call.code)) continue;
      const kind = call.code === 'nothing' ? 'unanswered' : 'refusedWithoutCause';
      fault(kind, what, call, `made a call from ${timesOf(call)} that ended with ${call.code}`);
    }
  };

  for (const request of history.requests) {
    const { outcome, retried } = request;
    if (outcome.is === 'vanished') {
      counts.vanished++;
      continue;
    }
    const span = spanOf(request);
    const failed = (kind: keyof typeof faulty, why: string): void => fault(kind, told(request), span, why);
    if (retried) {
      counts.retried++;
      if (!explanations.explain(span, brokenCode(retried.why))) {
        failed('lost', `had its connection broken (${retried.why}) without a cause`);
      }
    }
    if (request.endedAt !== undefined && request.endedAt > request.sentAt + request.waitMs + LATE_MS) {
      failed('late', `was answered ${Math.round(request.endedAt - request.sentAt)} ms after it was sent`);
    }
    judgeCalls(told(request), request.kept?.failedCalls ?? []);
    const isPromised = request.kept?.acceptedAt !== undefined;
    if (isPromised) kept.accepted++;
    else if (outcome.is === 'error' && REFUSALS.includes(outcome.status)) {
      counts.refused++;
      if (!isExplained(request, outcome.code)) failed('refusedWithoutCause', outcome.code);
      continue;
    }
    counts.accepted++;
    const calm = !explanations.hadOutage(span);
    if (calm) undisturbed.accepted++;
    if (outcome.is === 'values') {
      const fit = misfit(request.asked, outcome.answered);
      if (fit === undefined) {
        counts.values++;
        if (calm) undisturbed.values++;
        if (isPromised) kept.collected++;
      } else failed('wrong', fit);
    } else if (isPromised) {
      // What it waits for outlasts every fault, and Redis forgets nothing: there is no excuse.
      kept.lost++;
      failed('lost', `was answered 202, then ${endOf(outcome)}`);
    } else if (outcome.is === 'nothing') failed('unanswered', 'got no answer at all');
    else {
      const code = outcome.is === 'broken' ? brokenCode(outcome.why) : outcome.code;
      if (!isExplained(request, code)) failed('lost', endOf(outcome));
    }
  }
  const batches = judgeBatches(history.batches, problems);
  for (const batch of history.batches) judgeCalls(batch.id, batch.failedCalls);

  function isExplained(request: RequestRecord, code: string): boolean {
    const span = spanOf(request);
    if (explanations.explain(span, code)) return true;
    // Nothing but time was lost: an excuse only if the deadline fell into what the fault took.
    const deadline = request.sentAt + request.waitMs;
    return (
      code === 'deadline_exceeded' &&
      explanations.met(span).some((f) => deadline <= f.to + explanations.of(f).recoveryMs)
    );
  }

  const valuesShare = undisturbed.accepted === 0 ? 1 : undisturbed.values / undisturbed.accepted;
  if (valuesShare < LEAST_VALUES) {
    problems.push(
      `only ${(valuesShare * 100).toFixed(2)}% of accepted requests got values outside of outages`,
    );
  }
  if (counts.values === 0) problems.push('no request at all got its value');
  if (history.requests.some((request) => request.kept) && kept.collected === 0) {
    problems.push('no result at all was collected');
  }
  const throughput = recovery(history);
  if (throughput.problem) problems.push(throughput.problem);
  const faults = faultCounts(history, Object.keys(excuses), problems);
  for (const { process, at, how } of history.deaths) {
    const killers = explanations.met({ from: at, to: at }).filter((f) => explanations.of(f).kills);
    if (killers.length === 0) problems.push(`${process} died by itself with ${how} at ${Math.round(at)} ms`);
  }
  problems.push(...history.leftovers.map((what) => `left over: ${what}`));
  return {
    verdict: problems.length === 0 ? 'pass' : 'fail',
    requests: history.requests.length,
    ...counts,
    ...faulty,
    async: kept,
    batches,
    valuesShare: Number(valuesShare.toFixed(5)),
    throughput: { before: throughput.before, after: throughput.after },
    faults,
    leftovers: history.leftovers.length,
    problems: shortened(problems),
  };
}

function spanOf({ sentAt, endedAt }: RequestRecord): Span {
  return { from: sentAt, to: endedAt ?? Number.POSITIVE_INFINITY };
}

function brokenCode(why: string): string {
  return why === 'ECONNREFUSED' ? 'refused' : 'broken';
}

function endOf(outcome: RequestRecord['outcome']): string {
  if (outcome.is === 'error') return `${outcome.status} ${outcome.code}`;
  return outcome.is === 'broken' ? outcome.why : outcome.is;
}

function faultCounts(history: History, names: readonly string[], problems: string[]): Verdict['faults'] {
  const minutes = faultMinutes(history);
  const faults: Verdict['faults'] = {};
  for (const name of names) {
    const fired = history.faults.filter((f) => f.name === name && f.failed === undefined).length;
    faults[name] = { count: fired, perMinute: Number((fired / minutes).toFixed(2)) };
    if (fired === 0) problems.push(`the fault ${name} never fired`);
  }
  for (const { name, target, failed } of history.faults) {
    if (failed !== undefined) problems.push(`the fault ${name} of ${target} failed: ${failed}`);
  }
  return faults;
}

function faultMinutes({ faults, calm }: History): number {
  const over: Span = { from: calm.to, to: Math.max(calm.to, ...faults.map(({ to }) => to)) };
  return Math.max(over.to - over.from, 1) / 60_000;
}

function told({ id, kind, asked, sentAt, endedAt }: RequestRecord): string {
  const span = `${Math.round(sentAt)} to ${endedAt === undefined ? '-' : Math.round(endedAt)} ms`;
  return `${id} (${kind}, ${asked.length} items, ${span})`;
}

function timesOf({ from, to }: Span): string {
  return `${Math.round(from)} to ${Math.round(to)} ms`;
}

function shortened(problems: readonly string[]): string[] {
  const more = problems.length - SHOWN_PROBLEMS;
  return more > 0 ? [...problems.slice(0, SHOWN_PROBLEMS), `and ${more} more`] : [...problems];
}
