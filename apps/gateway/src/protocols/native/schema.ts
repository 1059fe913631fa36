import { ERRORS, PRIORITIES, type PriorityClass } from '@millrace/shared';
import { z } from 'zod';
import { parametersSchema } from '../parameters.js';

/** The bodies of the native door, as they are read and as they are documented. */

/** The content type of a stream of lines, and of its answer. */
export const LINES_TYPE = 'application/x-ndjson';

/** How the lines of a stream may be answered: in their order, or as they are done. */
export const ORDERS = ['input', 'finished'] as const;

/** The query of a stream; any other parameter is refused: a misspelt one would change nothing and tell nobody. */
export const streamQuerySchema = z.strictObject({ order: z.enum(ORDERS).default('input') });

/** Read by the model's task, element by element: see parse.ts. */
const inputs = z.unknown().meta({
  oneOf: [
    { type: 'string', minLength: 1 },
    { type: 'object', minProperties: 1 },
    {
      type: 'array',
      minItems: 1,
      items: {
        oneOf: [
          { type: 'string', minLength: 1 },
          { type: 'object', minProperties: 1 },
        ],
      },
    },
  ],
  description:
    'One input or a list of them. A text model takes strings. A tensor model takes objects with a nested list per input of the model, without the axis of items: `{"fp32": [1, 2]}`.',
});

const WAIT = { error: 'must be a number of ms above 0' };

export const predictRequestSchema = z
  .strictObject({
    inputs,
    waitMs: z
      .number(WAIT)
      .positive(WAIT)
      .optional()
      .describe(
        'How long to wait for the answer, in ms; then 504, and the work is taken back. Cut to the server’s longest wait. Default: what the header `Prefer: wait=SECONDS` says, or else the server’s own wait.',
      ),
    partial: z
      .boolean()
      .optional()
      .describe(
        'Answer 200 even if the model can’t take single inputs: `null` in their place, and `errors`. Default: false, such an input fails the request.',
      ),
    priority: z
      .enum(Object.keys(PRIORITIES) as [PriorityClass, ...PriorityClass[]])
      .optional()
      .describe('What goes first. Default: what the header `Millrace-Priority` says, or else `interactive`.'),
    parameters: parametersSchema,
  })
  .meta({ id: 'PredictRequest', description: 'What to predict from. Any other field is refused.' });

const errorCode = z.enum(Object.keys(ERRORS) as [string, ...string[]]);

const itemError = z
  .strictObject({
    index: z.int().min(0).describe('Index of the input.'),
    code: errorCode,
    message: z.string(),
  })
  .meta({ id: 'ItemError' });

export const predictAnswerSchema = z
  .strictObject({
    id: z.uuid().describe('The server’s own id of this request, as in the header `X-Request-Id`.'),
    model: z.string(),
    version: z.string(),
    outputs: z
      .array(z.union([z.array(z.number()), z.record(z.string(), z.unknown()), z.null()]))
      .min(1)
      .describe(
        'One for each input, in order: a list of numbers from a text-embedding model, an object with a nested list per output from a tensor model, `null` where the input failed (with `partial` only).',
      ),
    truncated: z
      .array(z.int().min(0))
      .optional()
      .describe('Indices of the texts that were longer than the model takes, and were cut.'),
    errors: z.array(itemError).optional().describe('Why outputs are `null`.'),
    timings: z.record(z.string(), z.number().min(0)).describe('Milliseconds of each stage, and their total.'),
  })
  .meta({ id: 'PredictAnswer' });

/** Problem details (RFC 9457) with fields of our own. */
export const problemSchema = z
  .strictObject({
    type: z.string().describe('`urn:millrace:error:` and the code.'),
    title: z.string().describe('What the code means.'),
    status: z.int(),
    detail: z.string().describe('What is wrong with this request.'),
    code: errorCode,
    field: z.string().optional().describe('The field or header at fault: `inputs[3]`.'),
    index: z.int().min(0).optional().describe('Index of the input at fault.'),
    errors: z.array(itemError).optional().describe('Every input that failed.'),
    requestId: z.uuid(),
  })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457).' });
