import { createHash } from 'node:crypto';
import { type FaultyItem, FOREVER, faultyInput, OUT_OF_RANGE } from '#worker/test-support/faulty-model.js';
import { nearest, type References, SAME_ANSWER } from '../support/load.js';
import { distance, MINILM } from '../support/minilm.js';
import type { Random } from '../support/random.js';
import type { RequestRecord } from './history.js';

/** What one request asks, and how the answers it gets are told apart. */
export interface Question {
  readonly kind: string;
  readonly model: string;
  readonly inputs: unknown[];
  readonly asked: RequestRecord['asked'];
  /** Items may fail by themselves: the answers of the others are wanted all the same. */
  readonly partial?: boolean;
  /** The name of the answer at one place: what `asked` has there if it is right. */
  recognise(output: unknown): string;
}

/** Of a hundred requests: how many are of each kind, and of how many items. */
export type Mix = readonly {
  readonly kind: 'identity' | 'identity-list' | 'identity-large' | 'sentence' | 'sentence-list';
  readonly percent: number;
  items(random: Random): number;
}[];

const MIX: Mix = [
  { kind: 'identity', percent: 36, items: () => 1 },
  { kind: 'identity-list', percent: 8, items: (random: Random) => 2 + Math.floor(random() * 45) },
  { kind: 'identity-large', percent: 6, items: () => 1 },
  { kind: 'sentence', percent: 42, items: () => 1 },
  { kind: 'sentence-list', percent: 8, items: (random: Random) => 2 + Math.floor(random() * 40) },
];

const HUNDRED_KIB = 100 * 1024;
/** Over 4 KiB a payload gets a key of its own; over 64 KiB a reply is only announced. */
const LARGE_BYTES = [5_000, 20_000, HUNDRED_KIB];

/** Draws what to ask. No two identity items are alike, so an answer that went astray is known as such. */
export class Questions {
  #count = 0;
  readonly #random: Random;
  readonly #references: References | undefined;
  readonly #faultyModel: string;

  /** Without references no sentences are asked, only identity. */
  constructor(random: Random, references: References | undefined, faultyModel: string) {
    this.#random = random;
    this.#references = references;
    this.#faultyModel = faultyModel;
  }

  next(mix: Mix = MIX): Question {
    let drawn = this.#random() * 100;
    const chosen = mix.find(({ percent }) => {
      drawn -= percent;
      return drawn < 0;
    });
    const { kind, items } = chosen ?? { kind: 'identity', items: () => 1 };
    if (kind.startsWith('sentence') && this.#references) {
      return this.#sentences(kind, items(this.#random), this.#references);
    }
    return this.#identity(
      kind,
      items(this.#random),
      kind === 'identity-large' ? pick(this.#random, LARGE_BYTES) : 20,
    );
  }

  /** A list long enough that a client can leave in the middle of it. */
  long(): Question {
    return this.#references
      ? this.#sentences('long', 60, this.#references)
      : this.#identity('long', 60, LARGE_BYTES[0] ?? 0);
  }

  /** Faulty-model items of which those `at` these places do `harm`. */
  #harmful(
    kind: string,
    count: number,
    at: readonly number[],
    harm: Partial<FaultyItem>,
    codes: readonly string[],
  ): Question {
    const items = Array.from({ length: count }, (_, i) => ({
      value: this.#count++ * 4,
      index: 0,
      ...(at.includes(i) ? harm : {}),
    }));
    return {
      kind,
      model: this.#faultyModel,
      inputs: items.map(faultyInput),
      asked: items.map(({ value }, i) =>
        at.includes(i) ? codes.map((code) => `error ${code}`) : `value ${value}`,
      ),
      partial: true,
      recognise: (output) => `value ${(output as { answer?: number[] } | null)?.answer?.[0]}`,
    };
  }

  /** Of the faulty model too, but with nothing wrong with it. */
  harmless(): Question {
    return this.#harmful('harmless', 1, [], {}, []);
  }

  poison(): Question {
    const count = 8 + Math.floor(this.#random() * 25);
    const at = Math.floor(this.#random() * count);
    return this.#harmful('poison', count, [at], { index: OUT_OF_RANGE }, ['inference_failed']);
  }

  hanging(): Question {
    return this.#harmful('hanging', 4, [Math.floor(this.#random() * 4)], { spins: FOREVER }, [
      'item_quarantined',
    ]);
  }

  #identity(kind: string, count: number, bytes: number): Question {
    const inputs = Array.from({ length: count }, () => this.#tensors(bytes));
    return {
      kind,
      model: 'identity',
      inputs,
      asked: inputs.map(({ fp32, int64, bytes: text }) => fingerprint([fp32, int64, text])),
      recognise: (output) => {
        const { fp32_out, int64_out, bytes_out } = (output ?? {}) as Record<string, unknown>;
        return fingerprint([fp32_out, int64_out, bytes_out]);
      },
    };
  }

  #tensors(bytes: number) {
    const n = this.#count++;
    const text = `${n} жаба 🐸 ${this.#random()} `;
    return {
      fp32: [Math.fround(this.#random()), Math.fround(-n / 3)],
      int64: [n, -n],
      bytes: [text.repeat(Math.ceil(bytes / text.length)), ''],
    };
  }

  #sentences(kind: string, count: number, references: References): Question {
    const indices = Array.from({ length: count }, () =>
      Math.floor(this.#random() * references.sentences.length),
    );
    return {
      kind,
      model: MINILM,
      inputs: indices.map((i) => references.sentences[i]),
      asked: indices.map((i) => `sentence ${i}`),
      recognise: (output) => {
        const answer = output as number[];
        const index = nearest(references, answer);
        const off = distance(references.answers[index] ?? [], answer);
        return off <= SAME_ANSWER
          ? `sentence ${index}`
          : `nothing known: ${off.toFixed(4)} from sentence ${index}`;
      },
    };
  }
}

/** Exact: numbers as JSON has them, which is without loss for these. */
function fingerprint(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length < 60 ? text : createHash('sha256').update(text).digest('hex').slice(0, 24);
}

function pick(random: Random, list: readonly number[]): number {
  return list[Math.floor(random() * list.length)] ?? 0;
}
