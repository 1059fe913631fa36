import { MillraceError, type ModelDescription } from '@millrace/shared';
import { requireItemCount } from '../limits.js';
import type { ParsedInputs } from '../new-request.js';
import { readTexts } from '../read-texts.js';
import { readTokenIds } from '../read-token-ids.js';
import { MAX_TEXTS } from './schema.js';

type ReadInput = Pick<ParsedInputs, 'inputs' | 'itemCount' | 'operation' | 'fieldOf'>;

const FORMS = 'must be a text, a list of texts, a list of token ids, or a list of lists of token ids';

/**
 * Reads `input` of an embeddings request: one text or many, as strings or as token ids.
 * @throws MillraceError `invalid_input` or `too_many_items` naming the field; `unsupported` when the model's
 * workers take no token ids.
 */
export function readInput(model: ModelDescription, input: unknown): ReadInput {
  if (typeof input === 'string') return readStrings(model, [input], () => 'input');
  if (!Array.isArray(input)) throw invalid('input', FORMS);
  if (input.length === 0) throw invalid('input', 'must not be empty');
  // By the first, which is then what all others must be.
  const [first] = input as unknown[];
  if (typeof first === 'number') return readTokens(model, [input], () => 'input');
  requireCount(model, input.length);
  const fieldOf = (index: number) => `input[${index}]`;
  if (typeof first === 'string') return readStrings(model, input, fieldOf);
  if (Array.isArray(first)) return readTokens(model, input, fieldOf);
  throw invalid('input[0]', `must be a text or token ids`, 0);
}

function requireCount(model: ModelDescription, count: number): void {
  if (count > MAX_TEXTS) {
    throw new MillraceError(
      'too_many_items',
      `input has ${count} items; a request takes at most ${MAX_TEXTS}.`,
      { field: 'input' },
    );
  }
  requireItemCount(model, count, 'input');
}

function readStrings(
  model: ModelDescription,
  values: readonly unknown[],
  fieldOf: (index: number) => string,
): ReadInput {
  return { inputs: [readTexts(model, values, fieldOf)], itemCount: values.length, fieldOf };
}

function readTokens(
  model: ModelDescription,
  lists: readonly unknown[],
  fieldOf: (index: number) => string,
): ReadInput {
  if (!model.operations?.includes('embed-tokens')) {
    throw new MillraceError(
      'unsupported',
      `input has token ids, which model ${model.name} does not take; send texts.`,
      { field: 'input' },
    );
  }
  return {
    inputs: [readTokenIds(lists, fieldOf)],
    itemCount: lists.length,
    operation: 'embed-tokens',
    fieldOf,
  };
}

function invalid(field: string, fault: string, index?: number): MillraceError {
  const details = index === undefined ? { field } : { field, index };
  return new MillraceError('invalid_input', `${field} ${fault}.`, details);
}
