import type { ErrorCode, MillraceError } from '@millrace/shared';
import { z } from 'zod';
import type { DoorErrors } from '../../http/context.js';

/** text-embeddings-inference's kinds of errors, as it writes them. */
const ERROR_TYPES = ['Validation', 'Tokenizer', 'Backend', 'Overloaded', 'Unhealthy'] as const;
type ErrorType = (typeof ERROR_TYPES)[number];

/** Statuses that text-embeddings-inference has for what it calls validation, and for a model that failed. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  invalid_input: 413,
  too_many_items: 413,
  text_too_long: 413,
  inference_failed: 424,
  item_quarantined: 424,
};
const TOKENIZER_STATUS = 422;

export const teiErrorSchema = z
  .object({
    error: z.string().describe('One sentence that names the field at fault.'),
    error_type: z.enum(ERROR_TYPES),
  })
  .meta({ id: 'TeiError' });

/** The errors of text-embeddings-inference: a sentence and its kind. */
export const teiErrors: DoorErrors = {
  name: 'tei',
  contentType: 'application/json',
  statusOf: (error) => (isTokenizers(error) ? TOKENIZER_STATUS : STATUSES[error.code]),
  render: (error) =>
    ({ error: error.message, error_type: typeOf(error) }) satisfies z.output<typeof teiErrorSchema>,
};

/** Whether it was the tokenizer that could not take an input: an id that is not in its vocabulary. */
function isTokenizers({ code, details }: MillraceError): boolean {
  return code === 'invalid_input' && details.items !== undefined;
}

function typeOf(error: MillraceError): ErrorType {
  if (isTokenizers(error)) return 'Tokenizer';
  const { status, fault } = error.spec;
  if (status === 503) return 'Unhealthy';
  if (fault === 'load') return 'Overloaded';
  return status >= 500 ? 'Backend' : 'Validation';
}
