import type { ModelDescription } from '@millrace/shared';
import type { z } from 'zod';
import { requireTexts } from '../limits.js';
import type { ParsedInputs } from '../new-request.js';
import { requireDimensions } from '../short-vectors.js';
import { readInput } from './read-input.js';
import type { embeddingsRequestSchema } from './schema.js';

/** What an embeddings request asks of the writing of its answer. */
export interface AskedEmbeddings {
  format: 'float' | 'base64';
  /** Numbers of each vector; undefined: as the model gives them. */
  dimensions: number | undefined;
}

export interface ParsedEmbeddings {
  parsed: ParsedInputs;
  asked: AskedEmbeddings;
}

/**
 * Makes inputs of a body that has the schema's form.
 * @throws MillraceError `invalid_input`, `too_many_items` or `unsupported`, naming the field.
 */
export function parseEmbeddings(
  model: ModelDescription,
  { input, encoding_format, dimensions }: z.output<typeof embeddingsRequestSchema>,
): ParsedEmbeddings {
  requireTexts(model);
  const asked = { format: encoding_format ?? 'float', dimensions: requireDimensions(model, dimensions) };
  return { parsed: { ...readInput(model, input), parameters: {} }, asked };
}
