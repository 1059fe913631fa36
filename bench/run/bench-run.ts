import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Releasers } from '@millrace/shared';
import type { FromGenerator, ToGenerator } from '../load/messages.js';
import { Child } from './child.js';
import { CpuTimes } from './proc.js';
import type { Bench, BenchOptions } from './scenario.js';

const WARM_UP_SECONDS = 2;
/** A server's first load warms its compiler too: thousands of requests pass before its hot code is optimized. */
const FIRST_WARM_UP_SECONDS = 10;
/** What a load leaves behind (kept jobs, garbage) is let settle before the next, in ms. */
const PAUSE_MS = 300;

interface Moment {
  at: number;
  cpu: CpuTimes;
}

/** What the whole machine could have worked from one moment to another. */
const machineMs = (from: number, to: number): number => (to - from) * availableParallelism();

/** One run of one scenario: its generator, its folder, and everything that has to end with it. */
export class BenchRun implements Bench {
  readonly #releasers = new Releasers();
  readonly #generator: Child<ToGenerator, FromGenerator>;

  private constructor(
    readonly options: BenchOptions,
    readonly say: (line: string) => void,
    readonly dataDir: string,
  ) {
    this.#generator = new Child('generator.js');
    this.own(() => this.#generator.stop());
  }

  static async start(options: BenchOptions, say: (line: string) => void): Promise<BenchRun> {
    await mkdir(options.cacheDir, { recursive: true });
    await mkdir(options.outDir, { recursive: true });
    // Of its own, so that cost curves are measured anew by each run, and once for all its sides.
    const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    const run = new BenchRun(options, say, dataDir);
    run.own(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    return run;
  }

  readonly #warmed = new Set<string>();

  own(release: () => Promise<void>): void {
    this.#releasers.push(release);
  }

  load: Bench['load'] = async (spec, pids = {}, onMeasuring = () => undefined) => {
    await sleep(PAUSE_MS);
    const { seconds } = this.options;
    const warmUpSeconds = this.#warmed.has(spec.url) ? WARM_UP_SECONDS : FIRST_WARM_UP_SECONDS;
    this.#warmed.add(spec.url);
    const whole = { warmUpSeconds, seconds, ...spec };
    let began = this.#clock();
    let ended: Moment | undefined;
    const { report } = await this.#generator.ask({ type: 'load', spec: whole }, 'report', () => {
      began = this.#clock();
      setTimeout(() => {
        ended = this.#clock();
      }, whole.seconds * 1000);
      onMeasuring();
    });
    const { cpu, at } = ended ?? this.#clock();
    return {
      ...report,
      cpu: cpu.since(began.cpu, pids),
      othersShare: cpu.othersSince(began.cpu, process.pid) / machineMs(began.at, at),
    };
  };

  watch: Bench['watch'] = async (work) => {
    await sleep(PAUSE_MS);
    const began = this.#clock();
    const result = await work();
    const { cpu, at } = this.#clock();
    return { result, othersShare: cpu.othersSince(began.cpu, process.pid) / machineMs(began.at, at) };
  };

  #clock(): Moment {
    return { at: performance.now(), cpu: CpuTimes.now() };
  }

  async end(): Promise<void> {
    await this.#releasers.release();
  }
}
