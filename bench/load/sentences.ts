import { readFile } from 'node:fs/promises';
import { normal, seeded } from '#test/support/random.js';

const LOG_MEAN = 2.55;
const LOG_DEVIATION = 0.62;
const LEAST_TOKENS = 5;
const MOST_TOKENS = 128;
const SPECIAL_TOKENS = 2;
const SEED = 7;
const SENTENCES = 4000;

/** Words of a tokenizer.json's vocabulary that are surely one token each. */
export async function vocabularyOf(tokenizerFile: string): Promise<string[]> {
  const { model } = JSON.parse(await readFile(tokenizerFile, 'utf8')) as {
    model: { vocab: Record<string, number> };
  };
  return Object.keys(model.vocab)
    .filter((word) => /^[a-z]{3,}$/.test(word))
    .sort();
}

/** Lengths in tokens, special ones included: lognormal, as sentences of mixed sources are. */
export function sentenceLengths(count: number, seed: number): number[] {
  const random = seeded(seed);
  return Array.from({ length: count }, () => {
    const tokens = Math.round(Math.exp(LOG_MEAN + LOG_DEVIATION * normal(random))) + SPECIAL_TOKENS;
    return Math.min(MOST_TOKENS, Math.max(LEAST_TOKENS, tokens));
  });
}

/** The bench's sentences: the same ones each time. */
export function makeSentences(vocabulary: readonly string[], count = SENTENCES, seed = SEED): string[] {
  const word = wordsOf(vocabulary, seed + 1);
  return sentenceLengths(count, seed).map((tokens) => textOf(tokens, word));
}

/** Texts of so many tokens each. */
export function makeTexts(vocabulary: readonly string[], count: number, tokens: number): string[] {
  const word = wordsOf(vocabulary, SEED);
  return Array.from({ length: count }, () => textOf(tokens, word));
}

function wordsOf(vocabulary: readonly string[], seed: number): () => string {
  const random = seeded(seed);
  return () => vocabulary[Math.floor(random() * vocabulary.length)] ?? '';
}

function textOf(tokens: number, word: () => string): string {
  return Array.from({ length: tokens - SPECIAL_TOKENS }, word).join(' ');
}
