import { Tokenizer } from '@huggingface/tokenizers';

export interface TokenizedText {
  ids: number[];
  /** The text had more tokens than the limit; `ids` are cut to it. */
  truncated: boolean;
}

/** A word of more characters than this is one unknown token to WordPiece, wherever it is cut. */
const LONGEST_WORD = 200;
const CHARACTERS_PER_TOKEN = 16;

/**
 * Tokenizes with truncation, which the library has none of. Pure, no state but the vocabulary.
 * A long text is cut to a stretch that surely holds the wanted tokens before it is tokenized, so that a
 * million characters cost no more than a few thousand.
 */
export class TextTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #before: number[];
  readonly #after: number[];

  /** `definition`: the content of a tokenizer.json. */
  constructor(definition: object) {
    this.#tokenizer = new Tokenizer(definition, {});
    const bare = this.#tokenizer.encode('a', { add_special_tokens: false }).ids;
    const whole = this.#tokenizer.encode('a').ids;
    const at = whole.indexOf(bare[0] ?? -1);
    this.#before = whole.slice(0, at);
    this.#after = whole.slice(at + bare.length);
  }

  /** `maxTokens` counts special tokens too. */
  encode(text: string, maxTokens: number): TokenizedText {
    const room = maxTokens - this.#before.length - this.#after.length;
    let ids: number[] = [];
    for (let length = Math.max(room, 1) * CHARACTERS_PER_TOKEN; ; length *= 4) {
      const stretch = cutAtSpace(text, length);
      ids = this.#tokenizer.encode(stretch, { add_special_tokens: false }).ids;
      if (stretch.length === text.length || ids.length > room) break;
    }
    const truncated = ids.length > room;
    const kept = truncated ? ids.slice(0, Math.max(room, 0)) : ids;
    return { ids: [...this.#before, ...kept, ...this.#after], truncated };
  }
}

/**
 * The first `length` characters, and on to the next white space so that no word is cut in two; at most a
 * word's length further.
 */
function cutAtSpace(text: string, length: number): string {
  if (text.length <= length + LONGEST_WORD) return text;
  let end = length;
  while (end < length + LONGEST_WORD && !/\s/.test(text.charAt(end))) end++;
  // Never between the halves of a surrogate pair.
  if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}
