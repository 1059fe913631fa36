import { Tokenizer } from '@huggingface/tokenizers';
import { type TextToken, TokenTeller } from './text-tokens.js';

export interface TokenizedText {
  ids: number[];
  /** The text had more tokens than the limit; `ids` are cut to it. */
  truncated: boolean;
}

/** A word of more characters than this is one unknown token to WordPiece, wherever it is cut. */
const LONGEST_WORD = 200;
const CHARACTERS_PER_TOKEN = 16;
/** Characters looked at in the worst case: before and after runs of white space are made one. */
const MOST_CHARACTERS = 2_000_000;
const MOST_DENSE_CHARACTERS = 64_000;

/**
 * Tokenizes with truncation, which the library has none of. Pure, no state but the vocabulary.
 * A long text is cut to a stretch that surely holds the wanted tokens before it is tokenized, so that a
 * million characters cost no more than a few thousand. Of a text with hardly a token in all that, only so
 * much is looked at: others wait for their turn behind it.
 */
export class TextTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #before: number[];
  readonly #after: number[];
  readonly #teller: TokenTeller;

  /** `definition`: the content of a tokenizer.json. */
  constructor(definition: object) {
    this.#tokenizer = new Tokenizer(definition, {});
    const bare = this.#tokenizer.encode('a', { add_special_tokens: false }).ids;
    const whole = this.#tokenizer.encode('a').ids;
    const at = whole.indexOf(bare[0] ?? -1);
    this.#before = whole.slice(0, at);
    this.#after = whole.slice(at + bare.length);
    this.#teller = new TokenTeller(this.#tokenizer, definition);
  }

  /** `maxTokens` counts special tokens too. */
  encode(text: string, maxTokens: number): TokenizedText {
    const room = this.#room(maxTokens);
    const first = cutAtSpace(text, Math.max(room, 1) * CHARACTERS_PER_TOKEN);
    let ids = this.#idsOf(first);
    let cut = first.length < text.length;
    if (cut && ids.length <= room) {
      // Few tokens in many characters: white space, or words that are one unknown token however long.
      const dense = text.slice(0, MOST_CHARACTERS).replace(/\s+/g, ' ');
      const stretch = cutAtSpace(dense, MOST_DENSE_CHARACTERS);
      ids = this.#idsOf(stretch);
      cut = text.length > MOST_CHARACTERS || stretch.length < dense.length;
    }
    return this.#within(ids, cut, room);
  }

  /**
   * Token ids made elsewhere, as {@link encode} would have made them: special tokens that are not there already
   * are put at both ends, and what is over the limit is cut between them.
   */
  complete(ids: readonly number[], maxTokens: number): TokenizedText {
    const from = startsWith(ids, this.#before) ? this.#before.length : 0;
    const to = ids.length - (endsWith(ids, this.#after, from) ? this.#after.length : 0);
    return this.#within(ids.slice(from, to), false, this.#room(maxTokens));
  }

  #room(maxTokens: number): number {
    return maxTokens - this.#before.length - this.#after.length;
  }

  #within(ids: number[], cut: boolean, room: number): TokenizedText {
    const truncated = cut || ids.length > room;
    const kept = truncated ? ids.slice(0, Math.max(room, 0)) : ids;
    return { ids: [...this.#before, ...kept, ...this.#after], truncated };
  }

  /** All tokens of a text, however many; those put round it are special. Takes as long as the text is. */
  tokenize(text: string, addSpecial: boolean): TextToken[] {
    const tokens = this.#teller.tell(text);
    if (!addSpecial) return tokens;
    const special = (ids: readonly number[]) => ids.map((id) => this.#teller.tellSpecial(id));
    return [...special(this.#before), ...tokens, ...special(this.#after)];
  }

  /** The text that tokens stand for; `ids` is not empty, and all of them are in the vocabulary. */
  detokenize(ids: number[], skipSpecial: boolean): string {
    // The decoder of tokenizer.json tidies as far as it is meant to.
    return this.#tokenizer.decode(ids, {
      skip_special_tokens: skipSpecial,
      clean_up_tokenization_spaces: false,
    });
  }

  /** The first of these ids that no token has. */
  unknownId(ids: readonly number[]): number | undefined {
    return ids.find((id) => this.#tokenizer.id_to_token(id) === undefined);
  }

  #idsOf(text: string): number[] {
    return this.#tokenizer.encode(text, { add_special_tokens: false }).ids;
  }
}

function startsWith(ids: readonly number[], start: readonly number[]): boolean {
  return start.every((id, i) => ids[i] === id);
}

/** Whether `ids` end with `end`, none of which stands before index `from`. */
function endsWith(ids: readonly number[], end: readonly number[], from: number): boolean {
  const at = ids.length - end.length;
  return at >= from && end.every((id, i) => ids[at + i] === id);
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
