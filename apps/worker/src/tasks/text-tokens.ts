import type { Tokenizer } from '@huggingface/tokenizers';
import { placeTokens, type Span, type WordPieceParts } from './token-spans.js';

/** A token of a text, in the form of text-embeddings-inference's `/tokenize`. */
export interface TextToken {
  id: number;
  /** The characters of the text that it stands for; as the vocabulary writes it where its place is not known. */
  text: string;
  /** Added by the tokenizer round the text. */
  special: boolean;
  /** First character, counted in Unicode code points from 0. */
  start: number | null;
  /** Behind the last character. */
  stop: number | null;
}

/** A WordPiece model as tokenizer.json describes it. */
interface Definition {
  model?: { type?: string; continuing_subword_prefix?: string; unk_token?: string };
}

/** Tells the tokens of texts with their places, for one tokenizer. */
export class TokenTeller {
  readonly #tokenizer: Tokenizer;
  readonly #parts: WordPieceParts | undefined;
  /** Finds, and captures, what is written like an added token. */
  readonly #added: RegExp | undefined;

  /** `definition`: the content of the tokenizer's tokenizer.json. */
  constructor(tokenizer: Tokenizer, definition: object) {
    this.#tokenizer = tokenizer;
    const added = [...tokenizer.get_added_tokens_decoder().values()].map(({ content }) => content);
    // The longest first: where several begin at one place, it is the one that counts.
    const sorted = added.filter((content) => content !== '').sort((a, b) => b.length - a.length);
    this.#added = sorted.length > 0 ? new RegExp(`(${sorted.map(escaped).join('|')})`) : undefined;
    const { model } = definition as Definition;
    // Other models' tokens are no stretches of the text.
    if (model?.type === 'WordPiece') this.#parts = partsOf(tokenizer, model);
  }

  /** The text's tokens, without those that are put round it. */
  tell(text: string): TextToken[] {
    const encoding = this.#tokenizer.encode(text, { add_special_tokens: false });
    const ids: number[] = encoding.ids;
    const tokens: string[] = encoding.tokens;
    const spans = this.#spans(text, tokens);
    const offsets = spans && offsetsOf(text);
    return tokens.map((token, i) => {
      const span = spans?.[i];
      return {
        id: ids[i] ?? 0,
        text: span && offsets ? text.slice(offsets[span.start], offsets[span.stop]) : token,
        special: false,
        start: span?.start ?? null,
        stop: span?.stop ?? null,
      };
    });
  }

  /** A token that the tokenizer puts round texts. */
  tellSpecial(id: number): TextToken {
    return { id, text: this.#tokenizer.id_to_token(id) ?? '', special: true, start: null, stop: null };
  }

  /** Places of all tokens, section by section: what is written like an added token is that token. */
  #spans(text: string, tokens: readonly string[]): Span[] | undefined {
    if (!this.#parts) return undefined;
    const spans: Span[] = [];
    let from = 0;
    for (const [i, section] of (this.#added ? text.split(this.#added) : [text]).entries()) {
      const length = characters(section);
      if (i % 2 === 1) spans.push({ start: from, stop: from + length });
      else {
        const placed = placeTokens(section, tokens, spans.length, this.#parts);
        if (!placed) return undefined;
        for (const { start, stop } of placed) spans.push({ start: start + from, stop: stop + from });
      }
      from += length;
    }
    return spans.length === tokens.length ? spans : undefined;
  }
}

function partsOf(tokenizer: Tokenizer, model: NonNullable<Definition['model']>): WordPieceParts {
  const { normalizer, pre_tokenizer: cutter } = tokenizer;
  return {
    normalize: (text) => normalizer?.normalize(text) ?? text,
    words: (text) => cutter?.pre_tokenize(text) ?? [text],
    prefix: model.continuing_subword_prefix ?? '##',
    unknown: model.unk_token ?? '[UNK]',
  };
}

/** Where each character begins in UTF-16, and the text's end. */
function offsetsOf(text: string): number[] {
  const offsets = [0];
  let at = 0;
  for (const character of text) {
    at += character.length;
    offsets.push(at);
  }
  return offsets;
}

function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
