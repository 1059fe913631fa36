import { move } from 'piscina';
import type { ItemFault } from './task.js';
import { tokenizerOf } from './tokenize-task.js';

/** Longer texts would hold up what waits for the same thread; cutting them first is the client's to do. */
export const MOST_CHARACTERS = 16_384;
export const MOST_IDS = 16_384;

/** One item of an operation that runs no model. */
export interface OperateTask {
  tokenizerFile: string;
  operation: 'tokenize' | 'detokenize';
  /** tokenize: UTF-8 of the text. detokenize: ids as uint32 little-endian. */
  input: Uint8Array<ArrayBuffer>;
  /** tokenize: add the special tokens. detokenize: leave them out. */
  special: boolean;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The answer as UTF-8: a JSON list of tokens, or a text. */
export function operate(task: OperateTask): Uint8Array<ArrayBuffer> | ItemFault {
  return task.operation === 'tokenize' ? tokenize(task) : detokenize(task);
}

function tokenize({ tokenizerFile, input, special }: OperateTask): Uint8Array<ArrayBuffer> | ItemFault {
  let text: string;
  try {
    text = utf8.decode(input);
  } catch {
    return { code: 'invalid_encoding', message: 'The text is not valid UTF-8.' };
  }
  if (text.length > MOST_CHARACTERS) {
    return {
      code: 'text_too_long',
      message: `The text has more than ${MOST_CHARACTERS} characters: cut it, and tokenize the pieces.`,
    };
  }
  return encoded(JSON.stringify(tokenizerOf(tokenizerFile).tokenize(text, special)));
}

function detokenize({ tokenizerFile, input, special }: OperateTask): Uint8Array<ArrayBuffer> | ItemFault {
  const count = input.byteLength / 4;
  if (!Number.isInteger(count) || count === 0) {
    return { code: 'invalid_input', message: 'The token ids must be one or more, of 4 bytes each.' };
  }
  if (count > MOST_IDS) {
    return { code: 'text_too_long', message: `There are more than ${MOST_IDS} token ids.` };
  }
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  const ids = Array.from({ length: count }, (_, i) => view.getUint32(4 * i, true));
  const tokenizer = tokenizerOf(tokenizerFile);
  const unknown = tokenizer.unknownId(ids);
  if (unknown !== undefined) {
    return { code: 'invalid_input', message: `The vocabulary has no token of the id ${unknown}.` };
  }
  return encoded(tokenizer.detokenize(ids, special));
}

function encoded(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** The piscina task: its input is moved in, its answer is moved out. */
export default function operateInThread(task: OperateTask): Uint8Array<ArrayBuffer> | ItemFault {
  const answer = operate(task);
  return answer instanceof Uint8Array ? (move(answer) as Uint8Array<ArrayBuffer>) : answer;
}
