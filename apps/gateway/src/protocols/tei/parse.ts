import { MillraceError, type ModelDescription, type Operation, type Tensor } from '@millrace/shared';
import { requireItemCount } from '../limits.js';
import type { ParsedInputs } from '../new-request.js';
import { readBy } from '../read-by.js';
import { readTexts } from '../read-texts.js';
import { readTokenIds } from '../read-token-ids.js';
import { cuttingParameters, requireNoPrompt, type Shaping, shapingOf } from './options.js';
import {
  decodeRequestSchema,
  embedRequestSchema,
  similarityRequestSchema,
  tokenizeRequestSchema,
} from './schema.js';

/** A body as it was read. */
export interface Parsed<Asked> {
  parsed: ParsedInputs;
  asked: Asked;
}

/** Names an item as the client wrote it. */
type FieldOf = (index: number) => string;

/**
 * All texts of a request together, in bytes, and all ids: a text's tokens take 60 times as much room as the text,
 * and that in Redis too.
 */
const MOST_TOKENIZED_BYTES = 256 * 1024;
const MOST_DECODED_BYTES = 1024 * 1024;

/**
 * The body of `/embed`.
 * @throws MillraceError `invalid_input`, `too_many_items`, or `unsupported` for token ids where the workers take none.
 */
export function parseEmbed(model: ModelDescription, value: unknown): Parsed<Shaping> {
  const body = readBy(embedRequestSchema, value);
  const { values, fieldOf, ofIds } = itemsOf(model, body.inputs, 'inputs');
  if (ofIds) requireOperation(model, 'embed-tokens');
  return {
    parsed: {
      inputs: [ofIds ? readTokenIds(values, fieldOf) : readTexts(model, values, fieldOf)],
      itemCount: values.length,
      parameters: cuttingParameters(model, body),
      fieldOf,
      ...(ofIds ? { operation: 'embed-tokens' as const } : {}),
    },
    asked: shapingOf(model, body),
  };
}

/**
 * The body of an address that names no task, where Hugging Face's client posts whatever it is asked for: sentences
 * to be compared are an object, texts to be embedded are not.
 * @returns undefined as `asked` for similarities.
 */
export function parseAny(model: ModelDescription, value: unknown): Parsed<Shaping | undefined> {
  const inputs = typeof value === 'object' && value !== null && 'inputs' in value ? value.inputs : undefined;
  const compares = typeof inputs === 'object' && inputs !== null && !Array.isArray(inputs);
  return compares ? parseSimilarity(model, value) : parseEmbed(model, value);
}

/** The body of `/similarity`: the source sentence is item 0. */
export function parseSimilarity(model: ModelDescription, value: unknown): Parsed<undefined> {
  const { inputs, parameters } = readBy(similarityRequestSchema, value);
  const sentences = listOf(inputs.sentences, 'inputs.sentences');
  const values = [inputs.source_sentence, ...sentences];
  requireItemCount(model, values.length, 'inputs');
  const fieldOf = (index: number) =>
    index === 0 ? 'inputs.source_sentence' : `inputs.sentences[${index - 1}]`;
  return {
    parsed: {
      inputs: [readTexts(model, values, fieldOf)],
      itemCount: values.length,
      parameters: cuttingParameters(model, parameters ?? {}, 'parameters.'),
      fieldOf,
    },
    asked: undefined,
  };
}

/** The body of `/tokenize`. */
export function parseTokenize(model: ModelDescription, value: unknown): Parsed<undefined> {
  const body = readBy(tokenizeRequestSchema, value);
  requireOperation(model, 'tokenize');
  requireNoPrompt(model, body.prompt_name);
  const { values, fieldOf } = itemsOf(model, body.inputs, 'inputs');
  const input = readTexts(model, values, fieldOf);
  requireRoom(input, 'inputs', MOST_TOKENIZED_BYTES);
  return {
    parsed: {
      inputs: [input],
      itemCount: values.length,
      parameters: { add_special_tokens: body.add_special_tokens ?? true },
      operation: 'tokenize',
      fieldOf,
    },
    asked: undefined,
  };
}

/** The body of `/decode`. */
export function parseDecode(model: ModelDescription, value: unknown): Parsed<undefined> {
  const body = readBy(decodeRequestSchema, value);
  requireOperation(model, 'detokenize');
  const { values, fieldOf } = itemsOf(model, body.ids, 'ids');
  const input = readTokenIds(values, fieldOf);
  requireRoom(input, 'ids', MOST_DECODED_BYTES);
  return {
    parsed: {
      inputs: [input],
      itemCount: values.length,
      parameters: { skip_special_tokens: body.skip_special_tokens ?? true },
      operation: 'detokenize',
      fieldOf,
    },
    asked: undefined,
  };
}

/** One item or a list of them: a list of numbers is one item, the token ids of a text. */
function itemsOf(
  model: ModelDescription,
  given: unknown,
  field: string,
): { values: unknown[]; fieldOf: FieldOf; ofIds: boolean } {
  if (given === undefined || given === null) throw invalid(field, 'is missing');
  const [first] = Array.isArray(given) ? (given as unknown[]) : [given];
  if (!Array.isArray(given) || typeof first === 'number') {
    return { values: [given], fieldOf: () => field, ofIds: typeof first === 'number' };
  }
  const values = listOf(given, field);
  requireItemCount(model, values.length, field);
  return { values, fieldOf: (index) => `${field}[${index}]`, ofIds: Array.isArray(first) };
}

function listOf(value: unknown, field: string): unknown[] {
  if (!Array.isArray(value)) throw invalid(field, value === undefined ? 'is missing' : 'must be a list');
  if (value.length === 0) throw invalid(field, 'must not be empty');
  return value;
}

function requireOperation(model: ModelDescription, operation: Operation): void {
  if (model.operations?.includes(operation)) return;
  throw new MillraceError(
    'unsupported',
    `The workers that serve model ${model.name} know no operation ${operation}.`,
  );
}

function requireRoom(input: Tensor, field: string, most: number): void {
  if (input.data.byteLength <= most) return;
  throw new MillraceError(
    'text_too_long',
    `${field} must not be larger than ${most} bytes together: send them in several requests.`,
    { field },
  );
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
