import { z } from 'zod';

/** The body of `POST /v1/embeddings`, as it is read and as it is documented. */

/** Most texts in a request by OpenAI's protocol; a model may take fewer. */
export const MAX_TEXTS = 2048;

const TOKENS = {
  type: 'array',
  items: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
  minItems: 1,
} as const;
const TEXT = { type: 'string', minLength: 1 } as const;

export const embeddingsRequestSchema = z
  .strictObject({
    model: z.string().min(1).describe('Name of a model of texts, as `GET /v1/models` lists them.'),
    /** Read element by element: see read-input.ts. */
    input: z
      .unknown()
      .refine((value) => value !== undefined, 'is missing')
      .meta({
        anyOf: [
          TEXT,
          { type: 'array', items: TEXT, minItems: 1, maxItems: MAX_TEXTS },
          TOKENS,
          { type: 'array', items: TOKENS, minItems: 1, maxItems: MAX_TEXTS },
        ],
        description:
          "A text, a list of texts, a text as the ids of the model's own tokens, or a list of such. Special tokens are added to ids that don't have them.",
      }),
    encoding_format: z
      .enum(['float', 'base64'])
      .nullish()
      .describe('`base64`: the bytes of the vector as little-endian float32. Default: `float`.'),
    dimensions: z
      .int()
      .min(1)
      .nullish()
      .describe(
        'Numbers of a vector: its first so many, scaled to length 1. Only of models that were trained for it, and never more than they have. Default: all.',
      ),
    user: z.string().nullish().describe('Ignored.'),
  })
  .meta({ id: 'EmbeddingsRequest', description: "A request of OpenAI's embeddings API." });
