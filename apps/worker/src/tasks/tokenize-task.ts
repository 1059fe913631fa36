import { readFileSync } from 'node:fs';
import { move } from 'piscina';
import { TextTokenizer } from './tokenizing.js';

/** The texts of a batch, end to end. */
export interface TokenizeTask {
  tokenizerFile: string;
  maxTokens: number;
  /** UTF-8 of all texts. */
  bytes: Uint8Array<ArrayBuffer>;
  /** End of each text in `bytes`. */
  ends: Uint32Array<ArrayBuffer>;
}

/** What a text became, in the answer's second number. */
export const TEXT_WHOLE = 0;
export const TEXT_TRUNCATED = 1;
export const TEXT_NOT_UTF8 = 2;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const tokenizers = new Map<string, TextTokenizer>();

/** The tokenizer of a file, loaded once a thread. */
export function tokenizerOf(file: string): TextTokenizer {
  let tokenizer = tokenizers.get(file);
  if (!tokenizer) {
    tokenizer = new TextTokenizer(JSON.parse(readFileSync(file, 'utf8')) as object);
    tokenizers.set(file, tokenizer);
  }
  return tokenizer;
}

/** For each text its token count, what it became, then its token ids. */
export function tokenizeTexts(task: TokenizeTask): Int32Array {
  const tokenizer = tokenizerOf(task.tokenizerFile);
  const answer: number[] = [];
  let from = 0;
  for (const end of task.ends) {
    let text: string | undefined;
    try {
      text = utf8.decode(task.bytes.subarray(from, end));
    } catch {
      answer.push(0, TEXT_NOT_UTF8);
    }
    if (text !== undefined) {
      const { ids, truncated } = tokenizer.encode(text, task.maxTokens);
      answer.push(ids.length, truncated ? TEXT_TRUNCATED : TEXT_WHOLE);
      for (const id of ids) answer.push(id);
    }
    from = end;
  }
  return Int32Array.from(answer);
}

/** The piscina task: its buffers are moved in, its answer is moved out. */
export default function tokenize(task: TokenizeTask): Int32Array {
  return move(tokenizeTexts(task)) as Int32Array;
}
