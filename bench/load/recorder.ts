import { availableParallelism } from 'node:os';
import { build, type Histogram } from 'hdr-histogram-js';
import { compareAnswers, type Sample } from './answers.js';
import type { Latencies, LoadReport, LoadSpec } from './messages.js';

/** Answers' values are compared after the load; so many are kept until then. */
const MOST_SAMPLES = 400;
/** Longest latency that is told apart, in microseconds: two minutes. */
const LONGEST_US = 120e6;
const OK = 200;
const REFUSED = new Set([429, 503]);

const histogram = () => build({ highestTrackableValue: LONGEST_US, numberOfSignificantValueDigits: 3 });

/** What is to be known of an answered request. */
export interface Answered {
  /** When it arrived. */
  since: number;
  /** When it was sent: its deadline counts from then. */
  sentAt: number;
  bodyIndex: number;
  /** What the server says that it took, in ms. */
  serverMs?: number | undefined;
}

/**
 * Counts between {@link begin} and {@link end}: in a closed loop the answers that come, in an open loop the
 * requests that arrive, whenever they are answered; otherwise the longest waits would be left out.
 */
export class Recorder {
  readonly #histogram = histogram();
  readonly #refusals = histogram();
  readonly #failures = new Map<string, number>();
  readonly #samples: Sample[] = [];
  readonly #spec: LoadSpec;
  #answered = 0;
  #pastDeadline = 0;
  #beganAt = 0;
  #endedAt = Number.NEGATIVE_INFINITY;
  #cpuBefore = process.cpuUsage();
  #cpuMs = 0;

  constructor(spec: LoadSpec) {
    this.#spec = spec;
  }

  get measuring(): boolean {
    return this.#beganAt > 0 && this.#endedAt < 0;
  }

  /** Whether a request that arrived then, and ends now, counts. */
  counts(since: number): boolean {
    if (this.#spec.loop.kind === 'closed') return this.measuring;
    return this.#beganAt > 0 && since >= this.#beganAt && (this.measuring || since <= this.#endedAt);
  }

  begin(): void {
    this.#cpuBefore = process.cpuUsage();
    this.#beganAt = performance.now();
  }

  end(): void {
    this.#endedAt = performance.now();
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    this.#cpuMs = (user + system) / 1000;
  }

  /** Whether the answer to this body is to be kept and shown to {@link answer}. */
  wants(bodyIndex: number): boolean {
    return (
      this.measuring &&
      this.#samples.length < MOST_SAMPLES &&
      this.#spec.check?.expected[bodyIndex] !== undefined
    );
  }

  answer(status: number, request: Answered, body: Buffer | undefined): void {
    const { since, bodyIndex } = request;
    if (!this.counts(since)) return;
    if (status !== OK) {
      const { serverMs } = request;
      if (REFUSED.has(status) && serverMs !== undefined) record(this.#refusals, serverMs);
      this.fail(String(status));
      return;
    }
    const now = performance.now();
    this.#answered++;
    if (now - request.sentAt > (this.#spec.deadlineMs ?? Number.POSITIVE_INFINITY)) this.#pastDeadline++;
    record(this.#histogram, now - since);
    if (body) this.#samples.push({ bodyIndex, body });
  }

  fail(reason: string, count = 1): void {
    if (count > 0) this.#failures.set(reason, (this.#failures.get(reason) ?? 0) + count);
  }

  report(): Omit<LoadReport, 'lateShare'> {
    const seconds = (this.#endedAt - this.#beganAt) / 1000;
    const { check, itemsPerRequest } = this.#spec;
    const { checked, wrong } = check ? compareAnswers(this.#samples, check) : { checked: 0, wrong: 0 };
    const requestsPerSecond = this.#answered / seconds;
    return {
      answered: this.#answered,
      requestsPerSecond,
      itemsPerSecond: requestsPerSecond * itemsPerRequest,
      latencyMs: latenciesOf(this.#histogram),
      refusedMs: latenciesOf(this.#refusals),
      pastDeadline: this.#pastDeadline,
      failures: Object.fromEntries(this.#failures),
      checked,
      wrong,
      cpuMs: this.#cpuMs,
      cpuShare: this.#cpuMs / (seconds * 1000 * availableParallelism()),
    };
  }
}

function record(histogram: Histogram, ms: number): void {
  histogram.recordValue(Math.min(LONGEST_US, Math.round(ms * 1000)));
}

function latenciesOf(histogram: Histogram): Latencies {
  const ms = (percentile: number) => histogram.getValueAtPercentile(percentile) / 1000;
  return {
    mean: histogram.mean / 1000,
    p50: ms(50),
    p90: ms(90),
    p99: ms(99),
    p999: ms(99.9),
    max: histogram.maxValue / 1000,
  };
}
