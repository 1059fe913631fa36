import type { SessionOptions } from '@millrace/shared';
import type { SessionThreadOptions, WireTensor } from '../session/messages.js';
import { SessionClient } from '../session/session-client.js';
import type { Task } from '../tasks/task.js';
import { itemDifferences } from './agreement.js';
import type { Workload } from './workload.js';

/** Two sets of options measured in turn. */
export interface Duel {
  /** Milliseconds that one session takes over the workload. */
  bestMs: number;
  candidateMs: number;
  /** How far the candidate's outputs are from the right ones, over all items; see `itemDifferences`. */
  difference: { mean: number; largest: number };
}

const LEAST_ROUNDS = 4;
const MOST_ROUNDS = 40;
/** A candidate that is slower by this after the first rounds is measured no further. */
const HOPELESS = 1.2;
const HOPELESS_AT_ONCE = 2;

/**
 * Opens sessions with different options on one model and measures them against each other, in turn and one
 * at a time: what else the machine does then disturbs both alike. At most two are open.
 */
export class TrialBench {
  readonly #open = new Map<string, SessionClient>();
  #right: WireTensor[][] | undefined;

  constructor(
    private readonly model: Omit<SessionThreadOptions, 'session'>,
    private readonly task: Task,
    private readonly workload: Workload,
  ) {}

  /** The outputs of these options are what others must agree with. */
  async setRight(options: SessionOptions): Promise<void> {
    this.#right = await this.#outputs(await this.#session(options));
  }

  /**
   * Measures for about `budgetMs`, at least a few rounds.
   * @throws Error when onnxruntime can't load or run the model with the candidate.
   */
  async duel(best: SessionOptions, candidate: SessionOptions, budgetMs: number): Promise<Duel> {
    for (const [key, client] of this.#open) {
      if (key === keyOf(best)) continue;
      this.#open.delete(key);
      await client.release();
    }
    const sides = [await this.#session(best), await this.#session(candidate)] as const;
    const outputs = await this.#outputs(sides[1]);
    const differences = outputs.flatMap((output, i) => itemDifferences(output, this.#right?.[i] ?? output));
    const difference = {
      mean: differences.reduce((total, each) => total + each, 0) / differences.length,
      largest: Math.max(...differences),
    };
    // Of each batch the shortest run counts: what makes a run longer is not the options' doing.
    const least = sides.map(() => this.workload.groups.map(() => Number.POSITIVE_INFINITY));
    const sum = (side: number): number => (least[side] ?? []).reduce((total, ms) => total + ms, 0);
    const endAt = performance.now() + budgetMs;
    await this.#outputs(sides[0]);
    for (let round = 0; round < MOST_ROUNDS; round++) {
      if (round > 0 && sum(1) > HOPELESS_AT_ONCE * sum(0)) break;
      if (round >= LEAST_ROUNDS && (performance.now() > endAt || sum(1) > HOPELESS * sum(0))) break;
      for (const [i, group] of this.workload.groups.entries()) {
        // Who is first in a round is second in the next.
        for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
          const { runMs } = await (sides[side] ?? sides[0]).run(this.task.assemble(group));
          const times = least[side];
          if (times) times[i] = Math.min(times[i] ?? runMs, runMs);
        }
      }
    }
    return { bestMs: sum(0), candidateMs: sum(1), difference };
  }

  async close(): Promise<void> {
    for (const client of this.#open.values()) await client.release();
    this.#open.clear();
  }

  async #session(options: SessionOptions): Promise<SessionClient> {
    const key = keyOf(options);
    const open = this.#open.get(key);
    if (open) return open;
    const client = await SessionClient.open({ ...this.model, session: options });
    this.#open.set(key, client);
    return client;
  }

  async #outputs(session: SessionClient): Promise<WireTensor[][]> {
    const outputs: WireTensor[][] = [];
    for (const group of this.workload.groups) {
      outputs.push((await session.run(this.task.assemble(group))).outputs);
    }
    return outputs;
  }
}

/** Thread count is no matter of one session. */
function keyOf({ threads: _, ...options }: SessionOptions): string {
  return JSON.stringify(options);
}
