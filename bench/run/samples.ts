import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mean } from './statistics.js';

/** One value over time. */
export interface Series {
  /** Seconds since the first sample. */
  at: number[];
  values: number[];
}

/** Reads of named values at one moment. */
export type Reading = Readonly<Record<string, number>>;

/** Reads values again and again until it is stopped. */
export class Sampler {
  readonly #series: Record<string, Series> = {};
  readonly #began = performance.now();
  readonly #timer: NodeJS.Timeout;
  #reading: Promise<void>;

  constructor(
    everyMs: number,
    private readonly read: () => Reading | Promise<Reading>,
  ) {
    this.#reading = this.#sample();
    this.#timer = setInterval(() => {
      this.#reading = this.#reading.then(() => this.#sample());
    }, everyMs);
  }

  /** @throws Error when a value could not be read. */
  async stop(): Promise<Readonly<Record<string, Series>>> {
    clearInterval(this.#timer);
    await this.#reading;
    return this.#series;
  }

  async #sample(): Promise<void> {
    const at = (performance.now() - this.#began) / 1000;
    for (const [name, value] of Object.entries(await this.read())) {
      const series = this.#series[name] ?? { at: [], values: [] };
      this.#series[name] = series;
      series.at.push(at);
      series.values.push(value);
    }
  }
}

/** Resident memory in MB. @throws Error when the process is gone. */
export const residentMb = (pid: number): number => statusMb(pid, 'VmRSS');

/** The most that it ever was, or has been since {@link forgetPeak}. @throws Error when the process is gone. */
export const peakMb = (pid: number): number => statusMb(pid, 'VmHWM');

/** Lets the system count a process's highest memory anew. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function statusMb(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kb = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`process ${pid} has ended`);
  return Number(kb) / 1024;
}

/** Open handles. @throws Error when the process is gone. */
export const handleCount = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Means of the first third and of the last: equal is flat. */
export function thirdsOf({ values }: Series): { first: number; last: number } {
  const third = Math.max(1, Math.floor(values.length / 3));
  return { first: mean(values.slice(0, third)), last: mean(values.slice(-third)) };
}

/** The most in the first fifth and in the last: what comes and goes in waves has its crests in both. */
export function fifthsOf({ values }: Series): { first: number; last: number } {
  const fifth = Math.max(1, Math.floor(values.length / 5));
  return { first: Math.max(...values.slice(0, fifth)), last: Math.max(...values.slice(-fifth)) };
}

/**
 * What a value grows by over its whole time, by the straight line that fits it best: a share of its mean, at
 * the least of `floor`.
 */
export function growthShare({ at, values }: Series, floor = 0): number {
  const [meanAt, meanValue] = [mean(at), mean(values)];
  let [up, down] = [0, 0];
  for (const [i, x] of at.entries()) {
    up += (x - meanAt) * ((values[i] ?? 0) - meanValue);
    down += (x - meanAt) ** 2;
  }
  const span = (at.at(-1) ?? 0) - (at[0] ?? 0);
  return down === 0 ? 0 : ((up / down) * span) / Math.max(floor, meanValue);
}

/** A series from `seconds` after its beginning on. */
export function afterSeconds({ at, values }: Series, seconds: number): Series {
  const from = at.findIndex((each) => each >= seconds);
  return from < 0 ? { at: [], values: [] } : { at: at.slice(from), values: values.slice(from) };
}
