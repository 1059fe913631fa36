import { MINILM } from '#test/support/minilm.js';
import { Child } from '../run/child.js';
import type { Bench } from '../run/scenario.js';
import { MODEL_CACHE, MODELS_DIR } from '../serve/minilm.js';
import type { FromRaw, ToRaw } from './messages.js';

const WARM_UP_SECONDS = 1;

export interface ModelPlace {
  modelsDir: string;
  name: string;
}

/** A model without a server around it, in a process of its own. */
export class RawSide {
  private constructor(
    private readonly child: Child<ToRaw, FromRaw>,
    readonly threads: number,
  ) {}

  static async start(
    bench: Bench,
    { modelsDir, name }: ModelPlace = { modelsDir: MODELS_DIR, name: MINILM },
  ): Promise<RawSide> {
    const child = new Child<ToRaw, FromRaw>('raw.js');
    bench.own(() => child.stop());
    const { dataDir } = bench;
    const { threads } = await child.ask(
      { type: 'load', modelsDir, cacheDir: MODEL_CACHE, dataDir, name },
      'loaded',
    );
    return new RawSide(child, threads);
  }

  /** Sentences a second through tokenizer, planner and sessions. */
  async loop(sentences: readonly string[], seconds: number): Promise<number> {
    const warmUpSeconds = WARM_UP_SECONDS;
    const told = await this.child.ask({ type: 'loop', sentences, warmUpSeconds, seconds }, 'looped');
    return told.itemsPerSecond;
  }

  /** Latency of a sentence alone, from text to vector. */
  async lone(sentences: readonly string[], seconds: number): Promise<{ p50Ms: number; p99Ms: number }> {
    const warmUpSeconds = WARM_UP_SECONDS;
    return await this.child.ask({ type: 'lone', sentences, warmUpSeconds, seconds }, 'timed');
  }

  async embed(sentences: readonly string[]): Promise<number[][]> {
    const { vectors } = await this.child.ask({ type: 'embed', sentences }, 'embedded');
    return vectors;
  }
}
