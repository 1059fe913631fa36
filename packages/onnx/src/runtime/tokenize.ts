import { Tokenizer } from '@huggingface/tokenizers';
import type { Tokens } from './batch.js';

/**
 * Token ids of texts, special tokens included.
 *
 * @param tokenizerJson the parsed tokenizer.json; its own truncation and padding are not used.
 * @param maxTokens longer texts are cut, and keep their last, special token.
 */
export function tokenize(tokenizerJson: object, texts: readonly string[], maxTokens: number): Tokens[] {
  const tokenizer = new Tokenizer(tokenizerJson, {});
  return texts.map((text) => {
    const ids = tokenizer.encode(text).ids;
    return ids.length <= maxTokens ? ids : [...ids.slice(0, maxTokens - 1), ...ids.slice(-1)];
  });
}
