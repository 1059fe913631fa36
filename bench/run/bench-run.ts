import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Releasers } from '@millrace/shared';
import type { FromGenerator, ToGenerator } from '../load/messages.js';
import { Child } from './child.js';
import { CpuTimes } from './proc.js';
import type { Bench, BenchOptions, Measured } from './scenario.js';

const WARM_UP_SECONDS = 2;
/** What a load leaves behind (kept jobs, garbage) is let settle before the next, in ms. */
const PAUSE_MS = 300;

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

  own(release: () => Promise<void>): void {
    this.#releasers.push(release);
  }

  load: Bench['load'] = async (spec, pids = {}) => {
    await sleep(PAUSE_MS);
    const { seconds } = this.options;
    const whole = { warmUpSeconds: WARM_UP_SECONDS, seconds, ...spec };
    let before = CpuTimes.now();
    let after = before;
    let beganAt = performance.now();
    const { report } = await this.#generator.ask({ type: 'load', spec: whole }, 'report', () => {
      before = CpuTimes.now();
      beganAt = performance.now();
      setTimeout(() => {
        after = CpuTimes.now();
      }, whole.seconds * 1000);
    });
    if (after === before) after = CpuTimes.now();
    const machineMs = (performance.now() - beganAt) * availableParallelism();
    const measured: Measured = {
      ...report,
      cpu: after.since(before, pids),
      othersShare: after.othersSince(before, process.pid) / machineMs,
    };
    return measured;
  };

  watch: Bench['watch'] = async (work) => {
    await sleep(PAUSE_MS);
    const before = CpuTimes.now();
    const beganAt = performance.now();
    const result = await work();
    const machineMs = (performance.now() - beganAt) * availableParallelism();
    return { result, othersShare: CpuTimes.now().othersSince(before, process.pid) / machineMs };
  };

  async end(): Promise<void> {
    await this.#releasers.release();
  }
}
