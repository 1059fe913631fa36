import { fileURLToPath } from 'node:url';
import { loadSettings } from '@millrace/shared';
import { type PreparedModel, prepareModel } from '@millrace/worker';
import { SAME_ANSWER } from '#test/support/load.js';
import { MINILM } from '#test/support/minilm.js';
import type { AnswerCheck } from '../load/messages.js';
import { makeSentences, vocabularyOf } from '../load/sentences.js';

export const MODELS_DIR = fileURLToPath(new URL('../../../models', import.meta.url));
/** Where official files and built models are, as every start finds them. */
export const MODEL_CACHE = loadSettings(process.env).cacheDir;

/** Of each so many blocks of sentences the first one's answers are compared; a block is the largest request. */
const CHECKED_OF = 16;
const BLOCK = 16;

export const prepareMinilm = (): Promise<PreparedModel> =>
  prepareModel({ modelsDir: MODELS_DIR, cacheDir: MODEL_CACHE, name: MINILM, env: process.env });

/** The sentences of every load of the default model. */
export async function sentencesFor({ manifest, files }: PreparedModel): Promise<string[]> {
  if (manifest.task !== 'text-embedding') throw new Error(`${manifest.name} takes no sentences`);
  return makeSentences(await vocabularyOf(files[manifest.text.tokenizer] ?? ''));
}

/** Bodies of the native door, `size` sentences each. */
export function predictBodies(sentences: readonly string[], size = 1): string[] {
  const count = Math.floor(sentences.length / size);
  return Array.from({ length: count }, (_, i) => {
    const inputs = sentences.slice(i * size, (i + 1) * size);
    return JSON.stringify({ inputs: size === 1 ? inputs[0] : inputs });
  });
}

/** The sentences whose answers are compared: every request's worth lies in one block of them. */
export const checkedSentences = (sentences: readonly string[]): string[] =>
  sentences.filter((_, i) => Math.floor(i / BLOCK) % CHECKED_OF === 0);

/**
 * The check of answers to bodies of `size` sentences each.
 * @param vectors right vectors by sentence.
 */
export function answerCheck(
  sentences: readonly string[],
  vectors: ReadonlyMap<string, readonly number[]>,
  size = 1,
  path: AnswerCheck['path'] = ['outputs'],
): AnswerCheck {
  const expected: Record<number, readonly (readonly number[])[]> = {};
  for (let i = 0; (i + 1) * size <= sentences.length; i++) {
    const right = sentences.slice(i * size, (i + 1) * size).flatMap((each) => {
      const vector = vectors.get(each);
      return vector ? [vector] : [];
    });
    if (right.length === size) expected[i] = right;
  }
  return { path, expected, tolerance: SAME_ANSWER };
}
