import {
  type Excuse,
  type FaultRecord,
  type History,
  REFUSALS,
  type RequestRecord,
  type Span,
} from './history.js';
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
  /** Refused though no fault of that time explains it. */
  refusedWithoutCause: number;
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
  const met = (request: RequestRecord): FaultRecord[] => history.faults.filter((f) => meets(request, f));
  const excuseOf = (fault: FaultRecord): Excuse => excuses[fault.name] ?? NO_EXCUSE;
  const counts = { accepted: 0, values: 0, refused: 0, retried: 0, vanished: 0 };
  const faulty = { lost: 0, wrong: 0, unanswered: 0, late: 0, refusedWithoutCause: 0 };
  const undisturbed = { accepted: 0, values: 0 };
  const fault = (kind: keyof typeof faulty, request: RequestRecord, why: string): void => {
    faulty[kind]++;
    const met_ = met(request).map(({ name, target }) => `${name} of ${target}`);
    problems.push(`${kind}: ${told(request)} ${why}; faults it met: ${met_.join(', ') || 'none'}`);
  };

  for (const request of history.requests) {
    const { outcome, retried } = request;
    if (outcome.is === 'vanished') {
      counts.vanished++;
      continue;
    }
    if (retried) {
      counts.retried++;
      const explained = met(request).some((f) => excuseOf(f).codes.includes(brokenCode(retried.why)));
      if (!explained) fault('lost', request, `had its connection broken (${retried.why}) without a cause`);
    }
    if (request.endedAt !== undefined && request.endedAt > request.sentAt + request.waitMs + LATE_MS) {
      fault(
        'late',
        request,
        `was answered ${Math.round(request.endedAt - request.sentAt)} ms after it was sent`,
      );
    }
    if (outcome.is === 'error' && REFUSALS.includes(outcome.status)) {
      counts.refused++;
      if (!isExplained(request, outcome.code)) fault('refusedWithoutCause', request, outcome.code);
      continue;
    }
    counts.accepted++;
    const calm = !met(request).some((f) => excuseOf(f).outage);
    if (calm) undisturbed.accepted++;
    if (outcome.is === 'values') {
      const fit = misfit(request.asked, outcome.answered);
      if (fit === undefined) {
        counts.values++;
        if (calm) undisturbed.values++;
      } else fault('wrong', request, fit);
    } else if (outcome.is === 'nothing') fault('unanswered', request, 'got no answer at all');
    else {
      const code = outcome.is === 'broken' ? brokenCode(outcome.why) : outcome.code;
      if (!isExplained(request, code)) {
        fault('lost', request, outcome.is === 'broken' ? outcome.why : `${outcome.status} ${code}`);
      }
    }
  }

  function isExplained(request: RequestRecord, code: string): boolean {
    return history.faults.some((f) => {
      const { codes, recoveryMs } = excuseOf(f);
      if (!meets(request, f)) return false;
      if (codes.includes(code)) return true;
      // Nothing but time was lost: an excuse only if the deadline fell into what the fault took.
      const deadline = request.sentAt + request.waitMs;
      return code === 'deadline_exceeded' && deadline <= f.to + recoveryMs;
    });
  }

  function meets(request: RequestRecord, span: FaultRecord): boolean {
    const end = request.endedAt ?? Number.POSITIVE_INFINITY;
    return end >= span.from && request.sentAt <= span.to + excuseOf(span).recoveryMs;
  }

  const valuesShare = undisturbed.accepted === 0 ? 1 : undisturbed.values / undisturbed.accepted;
  if (valuesShare < LEAST_VALUES) {
    problems.push(
      `only ${(valuesShare * 100).toFixed(2)}% of accepted requests got values outside of outages`,
    );
  }
  if (counts.values === 0) problems.push('no request at all got its value');
  const throughput = recovery(history);
  if (throughput.problem) problems.push(throughput.problem);
  const faults = faultCounts(history, Object.keys(excuses), problems);
  for (const { process, at, how } of history.deaths) {
    const killers = history.faults.filter(
      (f) => excuseOf(f).kills && at >= f.from && at <= f.to + excuseOf(f).recoveryMs,
    );
    if (killers.length === 0) problems.push(`${process} died by itself with ${how} at ${Math.round(at)} ms`);
  }
  problems.push(...history.leftovers.map((what) => `left over: ${what}`));
  return {
    verdict: problems.length === 0 ? 'pass' : 'fail',
    requests: history.requests.length,
    ...counts,
    ...faulty,
    valuesShare: Number(valuesShare.toFixed(5)),
    throughput: { before: throughput.before, after: throughput.after },
    faults,
    leftovers: history.leftovers.length,
    problems: shortened(problems),
  };
}

const NO_EXCUSE: Excuse = { codes: [], outage: false, recoveryMs: 0 };

function brokenCode(why: string): string {
  return why === 'ECONNREFUSED' ? 'refused' : 'broken';
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

/** What is wrong with an answer, or undefined. */
function misfit(asked: RequestRecord['asked'], answered: readonly string[]): string | undefined {
  if (asked.length !== answered.length) return `asked ${asked.length} items and got ${answered.length}`;
  const at = asked.findIndex(
    (name, i) => !(typeof name === 'string' ? [name] : name).includes(answered[i] ?? ''),
  );
  return at < 0 ? undefined : `got "${answered[at]}" for item ${at}, "${asked[at]}"`;
}

function told({ id, kind, asked, sentAt, endedAt }: RequestRecord): string {
  const span = `${Math.round(sentAt)} to ${endedAt === undefined ? '-' : Math.round(endedAt)} ms`;
  return `${id} (${kind}, ${asked.length} items, ${span})`;
}

function shortened(problems: readonly string[]): string[] {
  const more = problems.length - SHOWN_PROBLEMS;
  return more > 0 ? [...problems.slice(0, SHOWN_PROBLEMS), `and ${more} more`] : [...problems];
}
