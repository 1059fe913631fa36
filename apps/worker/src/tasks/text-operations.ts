import type { Operation } from '@millrace/shared';
import type { OperateTask } from './operate-task.js';
import type { PreprocessPool } from './preprocess-pool.js';
import type { Answered, ItemFault, RawItem } from './task.js';

/** What an operation takes, what it gives, and the parameter that a request may set, with its default. */
const OPERATIONS = {
  tokenize: { input: 'text', output: 'tokens', parameter: 'add_special_tokens' },
  detokenize: { input: 'token_ids', output: 'text', parameter: 'skip_special_tokens' },
} as const;

export function runsNoModel(operation: Operation | undefined): operation is 'tokenize' | 'detokenize' {
  return operation === 'tokenize' || operation === 'detokenize';
}

/** Answers an item of `tokenize` or `detokenize` by the tokenizer alone. */
export async function answerByTokenizer(
  item: RawItem,
  operation: 'tokenize' | 'detokenize',
  tokenizerFile: string,
  pool: PreprocessPool,
): Promise<Answered | ItemFault> {
  const { input: name, output, parameter } = OPERATIONS[operation];
  const input = item.inputs.get(name);
  if (input?.datatype !== 'BYTES' || input.shape.some((size) => size !== 1)) {
    return { code: 'invalid_input', message: `The item has no single BYTES input "${name}".` };
  }
  const task: OperateTask = {
    tokenizerFile,
    operation,
    // Copied: it is moved to another thread, and its buffer holds more than it.
    input: new Uint8Array(input.data.subarray(4)),
    special: item.parameters?.[parameter] !== false,
  };
  const answer = await pool.operate(task);
  return answer instanceof Uint8Array ? { outputs: [bytesOutput(output, answer)] } : answer;
}

function bytesOutput(name: string, element: Uint8Array): Answered['outputs'][number] {
  const data = new Uint8Array(4 + element.byteLength);
  new DataView(data.buffer).setUint32(0, element.byteLength, true);
  data.set(element, 4);
  return { name, datatype: 'BYTES', shape: [], data };
}
