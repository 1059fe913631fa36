import type { LoadSpec } from '../load/messages.js';
import { RawSide } from '../raw/raw-side.js';
import type { Bench } from '../run/scenario.js';
import { answerCheck, checkedSentences, predictBodies, prepareMinilm, sentencesFor } from './minilm.js';

/** The sentences of a load, the right answers to some, and the model without a server around it. */
export class SentenceLoad {
  private constructor(
    readonly sentences: readonly string[],
    readonly raw: RawSide,
    readonly vectors: ReadonlyMap<string, readonly number[]>,
  ) {}

  static async prepare(bench: Bench): Promise<SentenceLoad> {
    bench.say('Preparing the model, its sentences and their right answers...');
    const sentences = await sentencesFor(await prepareMinilm());
    const raw = await RawSide.start(bench);
    const checked = checkedSentences(sentences);
    const vectors = await raw.embed(checked);
    return new SentenceLoad(sentences, raw, new Map(checked.map((each, i) => [each, vectors[i] ?? []])));
  }

  /** What to send to the native door, `size` sentences a request. */
  requests(size = 1): Pick<LoadSpec, 'bodies' | 'itemsPerRequest' | 'check'> {
    return {
      bodies: predictBodies(this.sentences, size),
      itemsPerRequest: size,
      check: answerCheck(this.sentences, this.vectors, size),
    };
  }
}
