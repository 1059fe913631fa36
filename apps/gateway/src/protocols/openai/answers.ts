import { ERRORS } from '@millrace/shared';
import { z } from 'zod';

/** The bodies of answers in OpenAI's shapes, as they are documented. */

const embedding = z
  .strictObject({
    object: z.literal('embedding'),
    index: z.int().min(0),
    embedding: z
      .union([z.array(z.number().nullable()), z.base64()])
      .describe('Numbers, or their bytes in base64, as `encoding_format` asks.'),
  })
  .meta({ id: 'Embedding' });

export const embeddingsAnswerSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(embedding).min(1).describe('A vector for each text, in order.'),
    model: z.string(),
    truncated: z
      .array(z.int().min(0))
      .optional()
      .describe('Indices of the texts that were longer than the model takes, and were cut.'),
    usage: z.strictObject({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) }),
  })
  .meta({ id: 'EmbeddingsAnswer' });

export const openaiErrorSchema = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.enum(['invalid_request_error', 'rate_limit_error', 'server_error']),
      param: z.string().nullable().describe('The field or header at fault.'),
      code: z.enum(Object.keys(ERRORS) as [string, ...string[]]),
    }),
  })
  .meta({ id: 'OpenAiError' });
