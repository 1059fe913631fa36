import type { Measured, Outcome, Side } from './scenario.js';
import { type Part, spread } from './statistics.js';

/** A generator that took more of the machine than this has to be mentioned. */
const LARGE_GENERATOR_SHARE = 0.15;
/** More late sends than this have to be mentioned. */
const LARGE_LATE_SHARE = 0.01;
/** More than this share of the machine taken by others makes a round doubtful. */
const DISTURBED_SHARE = 0.03;

/** The rounds of every side: their figures, and what went wrong in them. */
export class Tally {
  readonly #figures = new Map<string, Map<string, number[]>>();
  readonly #faults: string[] = [];
  readonly #notes = new Set<string>();
  #generatorCpuShare = 0;
  #lateShare = 0;
  #disturbed = 0;
  #othersShare = 0;
  #loads = 0;
  #answersChecked = 0;

  /** A load of one side. `tolerated`: failures that belong to the scenario, such as an overload's. */
  add(side: string, load: Measured, tolerated: RegExp = /^$/): void {
    const { latencyMs, answered, cpu } = load;
    this.figure(side, 'itemsPerSecond', load.itemsPerSecond);
    this.figure(side, 'p50Ms', latencyMs.p50);
    this.figure(side, 'p99Ms', latencyMs.p99);
    for (const [name, ms] of Object.entries(cpu))
      this.figure(side, `${name}CpuMs`, ms / Math.max(1, answered));
    this.judge(side, load, tolerated);
  }

  /** Only what went wrong in a load, and what it cost; for those whose figures are not the scenario's. */
  judge(side: string, load: Measured, tolerated: RegExp = /^$/): void {
    if (load.answered === 0) this.#faults.push(`${side}: nothing was answered`);
    for (const [what, count] of Object.entries(load.failures)) {
      if (!tolerated.test(what)) this.#faults.push(`${side}: ${count} x ${what}`);
    }
    if (load.wrong > 0) this.#faults.push(`${side}: ${load.wrong} of ${load.checked} answers are wrong`);
    if (load.generatorLimit) this.note(`${side}: the generator was the limit: ${load.generatorLimit}`);
    this.#generatorCpuShare = Math.max(this.#generatorCpuShare, load.cpuShare);
    this.#lateShare = Math.max(this.#lateShare, load.lateShare);
    this.#answersChecked += load.checked;
    this.watched(load.othersShare);
  }

  /** What others took of the machine during a measurement. */
  watched(othersShare: number): void {
    this.#loads++;
    this.#othersShare = Math.max(this.#othersShare, othersShare);
    if (othersShare > DISTURBED_SHARE) this.#disturbed++;
  }

  figure(side: string, name: string, value: number): void {
    const figures = this.#figures.get(side) ?? new Map<string, number[]>();
    this.#figures.set(side, figures);
    figures.set(name, [...(figures.get(name) ?? []), value]);
  }

  values(side: string, name: string): readonly number[] {
    return this.#figures.get(side)?.get(name) ?? [];
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  fault(text: string): void {
    this.#faults.push(text);
  }

  outcome(parts: Part[], facts?: Record<string, unknown>): Outcome {
    if (this.#generatorCpuShare > LARGE_GENERATOR_SHARE) {
      const percent = (this.#generatorCpuShare * 100).toFixed(0);
      this.note(
        `the generator took up to ${percent}% of the machine; a server alone on it would answer more, the faster side the more so`,
      );
    }
    if (this.#lateShare > LARGE_LATE_SHARE) {
      const percent = (this.#lateShare * 100).toFixed(0);
      this.note(
        `with the machine full, the generator got the CPU late for up to ${percent}% of the requests of a load; their latency counts from when they should have been sent`,
      );
    }
    if (this.#disturbed > 0) {
      const percent = (this.#othersShare * 100).toFixed(0);
      this.note(
        `${this.#disturbed} of ${this.#loads} measurements were disturbed: others took up to ${percent}% of the machine`,
      );
    }
    const sides: Record<string, Side> = {};
    for (const [side, figures] of this.#figures) {
      sides[side] = Object.fromEntries([...figures].map(([name, values]) => [name, spread(values)]));
    }
    return {
      parts,
      sides,
      faults: this.#faults,
      notes: [...this.#notes],
      generatorCpuShare: this.#generatorCpuShare,
      facts: { answersChecked: this.#answersChecked, ...facts },
    };
  }
}

/** A B A B ...: each side once a round, in their order. */
export async function interleave(
  rounds: number,
  sides: readonly ((round: number) => Promise<void>)[],
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) await side(round);
  }
}
