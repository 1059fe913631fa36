import { MINILM } from '../support/minilm.js';
import type { Random } from '../support/random.js';
import { oneOf } from './fault.js';
import type { Mix, Question, Questions } from './questions.js';

/** Where lines go that name no address. */
export const BULK_ENDPOINT = '/v1/embeddings';

/** Of a hundred lines. Mostly light ones: thousands of them share the machine with the faults and the load. */
const MIX: Mix = [
  { kind: 'identity', percent: 76, items: () => 1 },
  { kind: 'identity-list', percent: 3, items: (random) => 2 + Math.floor(random() * 45) },
  { kind: 'identity-large', percent: 1, items: () => 1 },
  { kind: 'sentence', percent: 19, items: () => 1 },
  { kind: 'sentence-list', percent: 1, items: (random) => 2 + Math.floor(random() * 40) },
];
/** Of a hundred lines, so many are wrong in some way, and so many are for the model that others of them break. */
const BROKEN_PERCENT = 2;
const HARMLESS_PERCENT = 2;

/** A line of a batch and what must become of it. */
export interface BulkLine {
  readonly text: string;
  /** As its answer must have it: null where the line tells none. */
  readonly customId: string | null;
  /** Item by item the name of the right answer; of a line that must fail, that of its error. */
  readonly asked: Question['asked'];
  /** The names of what an answer's body has. */
  read(body: unknown): string[];
}

/** Draws the lines of batches. */
export class BulkLines {
  readonly #random: Random;
  readonly #questions: Questions;
  #count = 0;

  constructor(random: Random, questions: Questions) {
    this.#random = random;
    this.#questions = questions;
  }

  /** One of each way to be wrong, and all others drawn. */
  draw(count: number): BulkLine[] {
    const lines = Array.from({ length: count }, () => this.#line());
    for (const broken of this.#broken) {
      lines[Math.floor(this.#random() * lines.length)] = broken(this.#name());
    }
    return lines;
  }

  #name(): string {
    return `line ${this.#count++}`;
  }

  #line(): BulkLine {
    const drawn = this.#random() * 100;
    if (drawn < BROKEN_PERCENT) return oneOf(this.#random, this.#broken)(this.#name());
    if (drawn < BROKEN_PERCENT + HARMLESS_PERCENT) return native(this.#name(), this.#questions.harmless());
    const question = this.#questions.next(MIX);
    return question.model === MINILM ? embeddings(this.#name(), question) : native(this.#name(), question);
  }

  /** Each of them costs its own line and no other. */
  readonly #broken: readonly ((name: string) => BulkLine)[] = [
    () => failing('', null, 'invalid_json'),
    (name) => failing(`{"custom_id": "${name}", "body": {"input"`, null, 'invalid_json'),
    (name) =>
      failing(JSON.stringify({ custom_id: name, url: '/v1/nowhere', body: {} }), name, 'invalid_input'),
    (name) => failing(JSON.stringify({ custom_id: name, body: { model: MINILM } }), name, 'invalid_input'),
    (name) => {
      const body = { model: 'no-such-model', input: 'a' };
      return failing(JSON.stringify({ custom_id: name, body }), name, 'model_not_found');
    },
    (name) => failing(native(name, this.#questions.poison()).text, name, 'inference_failed'),
  ];
}

function failing(text: string, customId: string | null, code: string): BulkLine {
  return { text, customId, asked: [`error ${code}`], read: () => ['an answer'] };
}

function native(name: string, { model, inputs, asked, recognise }: Question): BulkLine {
  const url = `/v1/models/${model}/predict`;
  return {
    text: JSON.stringify({ custom_id: name, method: 'POST', url, body: { inputs } }),
    customId: name,
    asked,
    read: (body) => ((body as { outputs?: unknown[] }).outputs ?? []).map(recognise),
  };
}

function embeddings(name: string, { model, inputs, asked, recognise }: Question): BulkLine {
  return {
    text: JSON.stringify({ custom_id: name, body: { model, input: inputs } }),
    customId: name,
    asked,
    read: (body) =>
      ((body as { data?: { embedding: unknown }[] }).data ?? []).map(({ embedding }) => recognise(embedding)),
  };
}
