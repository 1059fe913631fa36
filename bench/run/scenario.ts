import type { LoadReport, LoadSpec } from '../load/messages.js';
import type { Part, Spread } from './statistics.js';

export interface BenchOptions {
  seconds: number;
  rounds: number;
  /** Folder of the peers to compare with. */
  peersDir: string;
  /** Whether scenarios that don't need the peers show their figures too. */
  withPeers: boolean;
  /** Kept between runs: built models, sentences, what a search found. */
  cacheDir: string;
  outDir: string;
  /** How many listen, where a scenario has listeners; absent: as many as it says. */
  listeners?: number;
  /** Lines of a file of bulk work; absent: as many as the scenario says. */
  lines?: number;
}

/** One measured load. */
export interface Measured extends LoadReport {
  /** CPU in ms by process while it was measured, and what none of ours took as a share of the machine. */
  cpu: Record<string, number>;
  othersShare: number;
}

/** What a scenario works with. */
export interface Bench {
  readonly options: BenchOptions;
  /** A line for the person who waits. */
  say(line: string): void;
  /** Loads a server. `pids`: whose CPU is wanted, by name. `onMeasuring`: called when the warm-up is over. */
  load(
    spec: Omit<LoadSpec, 'warmUpSeconds' | 'seconds'> & Partial<Pick<LoadSpec, 'warmUpSeconds' | 'seconds'>>,
    pids?: Readonly<Record<string, number>>,
    onMeasuring?: () => void,
  ): Promise<Measured>;
  /** Does something else than a load; with the share of the machine that others took meanwhile. */
  watch<T>(work: () => Promise<T>): Promise<{ result: T; othersShare: number }>;
  /** Has something released when the scenario ends, in the reverse order, however it ends. */
  own(release: () => Promise<void>): void;
  /** Data folder of the run: cost curves measured by one side are found by the others. */
  readonly dataDir: string;
}

export interface Side {
  [figure: string]: Spread;
}

export interface Outcome {
  parts: Part[];
  sides: Record<string, Side>;
  /** What makes the figures worthless, whatever they are: wrong answers, failures. */
  faults: string[];
  /** What has to be known to read the figures. */
  notes: string[];
  /** Largest share of the machine that the generator took. */
  generatorCpuShare: number;
  /** Further facts for the JSON. */
  facts: Record<string, unknown>;
}

export interface Scenario {
  name: string;
  /** What it compares, in a line. */
  summary: string;
  /** How long it measures each load where nobody says, if not as long as the others do. */
  seconds?: number;
  /** How often it measures each side where nobody says, if not as often as the others do. */
  rounds?: number;
  run(bench: Bench): Promise<Outcome>;
}
