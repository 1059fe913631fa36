import { expect } from 'chai';
import type { BatchRun, Excuse, FailedCall, FaultRecord, History, RequestRecord } from './history.js';
import { judge } from './judge.js';

const EXCUSES: Record<string, Excuse> = {
  outage: { codes: ['queue_unavailable'], outage: true, recoveryMs: 1000 },
  'gateway-kill': { codes: ['broken'], outage: false, recoveryMs: 500 },
  'worker-kill': { codes: [], outage: false, recoveryMs: 4000 },
};
const OUTAGE: FaultRecord = { name: 'outage', target: 'redis', from: 5000, to: 6000 };
const FAULTS: FaultRecord[] = [
  OUTAGE,
  { name: 'gateway-kill', target: 'gateway-1', from: 7000, to: 8000 },
  { name: 'worker-kill', target: 'worker-1', from: 9000, to: 10_000 },
];

const NONE = { duplicated: 0, missing: 0, outOfOrder: 0, wrong: 0 };
const FOUND = { ...NONE, told: [] };
const BATCH: BatchRun = {
  id: 'batch',
  lines: 1000,
  from: 1000,
  to: 9000,
  end: 'completed',
  failedCalls: [],
  found: FOUND,
};

/** Twenty requests a second for 22 s, each answered rightly after 30 ms. */
function flawless(): History {
  const requests = Array.from(
    { length: 440 },
    (_, i): RequestRecord => ({
      id: `r${i}`,
      kind: 'identity',
      asked: [`answer ${i}`],
      sentAt: i * 50,
      waitMs: 2000,
      endedAt: i * 50 + 30,
      outcome: { is: 'values', answered: [`answer ${i}`] },
    }),
  );
  return {
    requests,
    batches: [],
    faults: FAULTS.map((f) => ({ ...f })),
    deaths: [],
    calm: { from: 0, to: 5000 },
    leftovers: [],
  };
}

/** The one that was sent at `sentAt`, in a history of its own, made different. */
function history(sentAt: number, change: Partial<RequestRecord>): History {
  const whole = flawless();
  const index = sentAt / 50;
  whole.requests[index] = { ...(whole.requests[index] as RequestRecord), ...change };
  return whole;
}

const error = (status: number, code: string): Partial<RequestRecord> => ({
  outcome: { is: 'error', status, code },
});

describe('the judge of a history', () => {
  it('passes one in which every request got its answer', () => {
    const verdict = judge(flawless(), EXCUSES);
    expect(verdict.problems).to.deep.equal([]);
    expect(verdict).to.deep.include({
      verdict: 'pass',
      accepted: 440,
      values: 440,
      lost: 0,
      wrong: 0,
      unanswered: 0,
    });
    expect(verdict.faults.outage).to.deep.equal({ count: 1, perMinute: 12 });
  });

  it('fails one in which a reply was dropped', () => {
    const { verdict, unanswered } = judge(
      history(1000, { outcome: { is: 'nothing' }, endedAt: 18_000 }),
      EXCUSES,
    );
    expect({ verdict, unanswered }).to.deep.equal({ verdict: 'fail', unanswered: 1 });
    const told = judge(history(1000, { ...error(504, 'deadline_exceeded'), endedAt: 3000 }), EXCUSES);
    expect(told).to.include({ verdict: 'fail', lost: 1 });
  });

  it('fails one in which two replies were swapped, or two items of one list', () => {
    const whole = flawless();
    const [a, b] = whole.requests as [RequestRecord, RequestRecord];
    [a.outcome, b.outcome] = [b.outcome, a.outcome];
    expect(judge(whole, EXCUSES)).to.include({ verdict: 'fail', wrong: 2 });
    const list = { asked: ['x', 'y'], outcome: { is: 'values', answered: ['y', 'x'] } } as const;
    expect(judge(history(1000, list), EXCUSES)).to.include({ verdict: 'fail', wrong: 1 });
    const short = { asked: ['x', 'y'], outcome: { is: 'values', answered: ['x'] } } as const;
    expect(judge(history(1000, short), EXCUSES)).to.include({ verdict: 'fail', wrong: 1 });
  });

  it('fails one in which a reply came more than a second after its deadline', () => {
    expect(judge(history(1000, { endedAt: 1000 + 2999 }), EXCUSES).verdict).to.equal('pass');
    expect(judge(history(1000, { endedAt: 1000 + 3001 }), EXCUSES)).to.include({ verdict: 'fail', late: 1 });
  });

  it('takes an error only where a fault of that time may cause it', () => {
    const refused = error(503, 'queue_unavailable');
    expect(judge(history(5500, refused), EXCUSES)).to.include({ verdict: 'pass', refused: 1, accepted: 439 });
    expect(judge(history(6900, refused), EXCUSES).verdict).to.equal('pass');
    expect(judge(history(8500, refused), EXCUSES)).to.include({ verdict: 'fail', refusedWithoutCause: 1 });
    expect(judge(history(5500, error(500, 'internal')), EXCUSES)).to.include({ verdict: 'fail', lost: 1 });
    expect(judge(history(5500, error(500, 'item_quarantined')), EXCUSES)).to.include({
      verdict: 'fail',
      lost: 1,
    });
  });

  it('takes a missed deadline only if a fault took the time until then', () => {
    const missed = (waitMs: number) => ({
      ...error(504, 'deadline_exceeded'),
      waitMs,
      endedAt: 8800 + waitMs,
    });
    expect(judge(history(8800, missed(2000)), EXCUSES).lost).to.equal(0);
    expect(judge(history(8800, missed(9000)), EXCUSES)).to.include({ verdict: 'fail', lost: 1 });
  });

  it('takes a broken connection only where a gateway died, and counts its retry as one request', () => {
    const retried = { retried: { at: 7400, why: 'ECONNRESET' } };
    expect(judge(history(7300, retried), EXCUSES)).to.include({ verdict: 'pass', retried: 1, requests: 440 });
    const refused = { retried: { at: 7400, why: 'ECONNREFUSED' } };
    expect(judge(history(7300, refused), EXCUSES)).to.include({ verdict: 'fail', lost: 1 });
    expect(judge(history(3000, retried), EXCUSES)).to.include({ verdict: 'fail', lost: 1 });
    expect(judge(history(3000, { outcome: { is: 'broken', why: 'ECONNRESET' } }), EXCUSES).verdict).to.equal(
      'fail',
    );
  });

  it('wants values for 99.5% of what was accepted outside of outages', () => {
    const whole = flawless();
    for (const request of whole.requests.slice(180, 184)) {
      Object.assign(request, { ...error(504, 'deadline_exceeded'), endedAt: request.sentAt + 2000 });
    }
    const { verdict, lost, problems } = judge(whole, EXCUSES);
    expect({ verdict, lost }).to.deep.equal({ verdict: 'fail', lost: 0 });
    expect(problems.join()).to.contain('% of accepted requests got values');
  });

  it('wants every item that must fail to fail, and in its own way', () => {
    const asked = ['x', ['error inference_failed', 'error item_quarantined']];
    const answered = (second: string) => ({
      asked,
      outcome: { is: 'values', answered: ['x', second] } as const,
    });
    expect(judge(history(1000, answered('error item_quarantined')), EXCUSES).verdict).to.equal('pass');
    expect(judge(history(1000, answered('error internal')), EXCUSES).wrong).to.equal(1);
    expect(judge(history(1000, answered('y')), EXCUSES).wrong).to.equal(1);
  });

  const kept = (more: Partial<RequestRecord> = {}, failedCalls: FailedCall[] = []) => ({
    waitMs: 10_000,
    kept: { acceptedAt: 5600, failedCalls },
    ...more,
  });

  it('counts a 202 whose result was collected, however often it had to be asked for', () => {
    const call = { from: 5700, to: 5710, code: 'queue_unavailable' };
    const { problems, async } = judge(history(5500, kept({ endedAt: 9000 }, [call])), EXCUSES);
    expect(problems).to.deep.equal([]);
    expect(async).to.deep.equal({ accepted: 1, collected: 1, lost: 0 });
  });

  it('excuses nothing once a request was answered 202', () => {
    for (const outcome of [
      { is: 'nothing' },
      { is: 'error', status: 503, code: 'queue_unavailable' },
      { is: 'error', status: 404, code: 'job_not_found' },
      { is: 'error', status: 500, code: 'job_lost' },
      { is: 'error', status: 504, code: 'deadline_exceeded' },
    ] as const) {
      const verdict = judge(history(5500, kept({ outcome, endedAt: 5900 })), EXCUSES);
      expect(verdict, JSON.stringify(outcome)).to.deep.include({ verdict: 'fail', lost: 1, accepted: 440 });
      expect(verdict.async.lost).to.equal(1);
    }
    const swapped = { outcome: { is: 'values', answered: ['answer 7'] } } as const;
    expect(judge(history(5500, kept(swapped)), EXCUSES)).to.include({ verdict: 'fail', wrong: 1 });
  });

  it('takes a refusal in place of the 202 as any other', () => {
    const refused = { ...error(503, 'queue_unavailable'), kept: { failedCalls: [] } };
    const whole = history(5500, refused);
    Object.assign(whole.requests[0] ?? {}, kept());
    expect(judge(whole, EXCUSES)).to.include({ verdict: 'pass', refused: 1 });
    expect(judge(history(3000, refused), EXCUSES)).to.include({ verdict: 'fail', refusedWithoutCause: 1 });
  });

  it('takes a failed call for a result, or of a batch, only where a fault explains it', () => {
    const calls = (code: string, at: number) => [{ from: at, to: at + 10, code }];
    const asking = (code: string, at: number) => judge(history(1000, kept({}, calls(code, at))), EXCUSES);
    expect(asking('broken', 7500).verdict).to.equal('pass');
    expect(asking('broken', 2000)).to.include({ verdict: 'fail', refusedWithoutCause: 1 });
    expect(asking('nothing', 5500)).to.include({ verdict: 'fail', unanswered: 1 });
    const driving = { ...flawless(), batches: [{ ...BATCH, failedCalls: calls('broken', 2000) }] };
    expect(judge(driving, EXCUSES)).to.include({ verdict: 'fail', refusedWithoutCause: 1 });
  });

  it('sums up the batches, and wants each line once, in order and right, and each batch completed', () => {
    const judged = (...batches: BatchRun[]) => judge({ ...flawless(), batches }, EXCUSES);
    const fine = judged(BATCH, BATCH);
    expect(fine.problems).to.deep.equal([]);
    expect(fine.batches).to.deep.equal({ ...NONE, files: 2, lines: 2000 });
    for (const kind of ['duplicated', 'missing', 'outOfOrder', 'wrong'] as const) {
      const { verdict, batches } = judged(BATCH, { ...BATCH, found: { ...FOUND, [kind]: 3 } });
      expect({ verdict, count: batches[kind] }, kind).to.deep.equal({ verdict: 'fail', count: 3 });
    }
    const { found: _, ...unread } = BATCH;
    for (const batch of [{ ...BATCH, end: 'failed' }, { ...unread, end: 'in_progress' }, unread]) {
      expect(judged(BATCH, batch)).to.have.property('verdict', 'fail');
    }
    expect(judged({ ...BATCH, found: { ...FOUND, told: ['it counts 3 lines'] } }).problems).to.have.length(1);
  });

  it('wants throughput back within 10 s after the last fault', () => {
    const whole = flawless();
    whole.requests = whole.requests.filter(({ sentAt }, i) => sentAt < 10_000 || i % 4 === 0);
    expect(judge(whole, EXCUSES).problems.join()).to.contain('throughput was 20/s');
  });

  it('fails for a fault that never fired or failed, for a death without a cause and for what was left over', () => {
    const idle = flawless();
    idle.faults.shift();
    expect(judge(idle, EXCUSES).problems).to.deep.equal(['the fault outage never fired']);
    const failed = flawless();
    failed.faults.push({ ...OUTAGE, failed: 'it had no connection' });
    expect(judge(failed, EXCUSES).problems).to.have.length(1);
    const died = { ...flawless(), deaths: [{ process: 'worker-2', at: 5500, how: 'SIGSEGV' }] };
    expect(judge(died, EXCUSES).problems).to.deep.equal(['worker-2 died by itself with SIGSEGV at 5500 ms']);
    const left = { ...flawless(), leftovers: ['the lock x'] };
    expect(judge(left, EXCUSES)).to.deep.include({ verdict: 'fail', problems: ['left over: the lock x'] });
  });
});
