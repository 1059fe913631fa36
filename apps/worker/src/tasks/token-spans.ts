/** Where a token stands in its text, counted in characters (Unicode code points). */
export interface Span {
  start: number;
  /** Behind its last character. */
  stop: number;
}

/** What placing tokens needs of a WordPiece tokenizer. */
export interface WordPieceParts {
  /** What a text looks like before it is cut into words. */
  normalize(text: string): string;
  /** Cuts a normalized text into words, without the white space between. */
  words(text: string): readonly string[];
  /** Marks a piece that goes on a word: `##`. */
  prefix: string;
  /** Stands for a whole word that the vocabulary can't say. */
  unknown: string;
}

/** Small sigma at the end of a word: lower-casing a word makes one, lower-casing its letter doesn't. */
const FINAL_SIGMA = /ς/g;

/**
 * Finds the tokens of a text in it again. The tokenizer keeps no positions, so the text's characters are normalized
 * one by one and matched with the words; all of it is checked.
 * @param text without added tokens (`[SEP]` and the like), which are not cut into words.
 * @param tokens those of the text are the first ones from index `first` on.
 * @returns undefined where words and characters don't match: a normalizer that works on several characters at once.
 */
export function placeTokens(
  text: string,
  tokens: readonly string[],
  first: number,
  parts: WordPieceParts,
): Span[] | undefined {
  const { letters, sources } = lettersOf(text, parts);
  const spans: Span[] = [];
  let at = 0;
  for (const word of parts.words(parts.normalize(text))) {
    const end = at + word.length;
    if (folded(word) !== letters.slice(at, end)) return undefined;
    if (tokens[first + spans.length] === parts.unknown) {
      spans.push(spanOf(sources, at, end));
      at = end;
    }
    for (let start = true; at < end; start = false) {
      const length = lengthOf(tokens[first + spans.length], start, parts.prefix);
      if (length === 0 || at + length > end) return undefined;
      spans.push(spanOf(sources, at, at + length));
      at += length;
    }
  }
  return at === letters.length ? spans : undefined;
}

/** A normalized text's letters without white space, and from which character of the text each came. */
function lettersOf(text: string, { normalize }: WordPieceParts): { letters: string; sources: number[] } {
  const known = new Map<string, string>();
  const sources: number[] = [];
  let letters = '';
  let index = 0;
  for (const character of text) {
    let normal = known.get(character);
    if (normal === undefined) {
      normal = normalize(character).replace(/\s+/g, '');
      known.set(character, normal);
    }
    letters += normal;
    for (let i = 0; i < normal.length; i++) sources.push(index);
    index++;
  }
  return { letters: folded(letters), sources };
}

function folded(letters: string): string {
  return letters.replace(FINAL_SIGMA, 'σ');
}

/** Letters that a token stands for; 0 where it can't stand here. */
function lengthOf(token: string | undefined, start: boolean, prefix: string): number {
  if (token === undefined) return 0;
  if (start) return token.length;
  return token.startsWith(prefix) ? token.length - prefix.length : 0;
}

function spanOf(sources: readonly number[], from: number, to: number): Span {
  return { start: sources[from] ?? 0, stop: (sources[to - 1] ?? 0) + 1 };
}
