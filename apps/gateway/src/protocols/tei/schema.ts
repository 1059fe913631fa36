import { z } from 'zod';

/** The bodies of text-embeddings-inference's requests, as they are read and as they are documented. */

const TEXT = { type: 'string', minLength: 1 } as const;
const TOKEN_IDS = {
  type: 'array',
  minItems: 1,
  items: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
} as const;
const listOf = (items: object) => ({ type: 'array', minItems: 1, items }) as const;

/** Read element by element: see parse.ts. */
const texts = z.unknown().meta({ anyOf: [TEXT, listOf(TEXT)], description: 'One text, or a list of texts.' });
const inputs = z.unknown().meta({
  anyOf: [TEXT, listOf(TEXT), TOKEN_IDS, listOf(TOKEN_IDS)],
  description: 'One text, a list of texts, the token ids of one text, or a list of such lists.',
});

const promptName = z
  .string()
  .nullable()
  .optional()
  .describe('Name of a prompt to put before the texts. Models have no prompts here: any is refused.');

const cutting = {
  truncate: z
    .boolean()
    .nullable()
    .optional()
    .describe(
      "Whether texts over the model's limit are cut (true) or refused (false). Default: what the model's manifest says; `/info` shows it as `auto_truncate`.",
    ),
  truncation_direction: z
    .enum(['right', 'Right', 'left', 'Left'])
    .nullable()
    .optional()
    .describe('The end at which texts are cut. `left` is refused, unless nothing is to be cut.'),
  prompt_name: promptName,
};

export const embedRequestSchema = z
  .object({
    inputs,
    ...cutting,
    normalize: z
      .boolean()
      .nullable()
      .optional()
      .describe(
        'Whether embeddings are scaled to length 1. Default: true. `false` is refused where the model itself scales them.',
      ),
    dimensions: z
      .int()
      .min(1)
      .nullable()
      .optional()
      .describe('Cut embeddings to so many numbers, where the model was made for that.'),
  })
  .meta({ id: 'TeiEmbedRequest' });

export const similarityRequestSchema = z
  .object({
    inputs: z.object({
      source_sentence: z.unknown().meta({ ...TEXT, description: 'What the sentences are compared with.' }),
      sentences: z.unknown().meta(listOf(TEXT)),
    }),
    parameters: z.object(cutting).nullable().optional(),
  })
  .meta({ id: 'TeiSimilarityRequest' });

export const tokenizeRequestSchema = z
  .object({
    inputs: texts,
    add_special_tokens: z
      .boolean()
      .nullable()
      .optional()
      .describe('Whether the tokens that the model wants round a text are told too. Default: true.'),
    prompt_name: promptName,
  })
  .meta({ id: 'TeiTokenizeRequest' });

export const decodeRequestSchema = z
  .object({
    ids: z.unknown().meta({
      anyOf: [TOKEN_IDS, listOf(TOKEN_IDS)],
      description: 'Token ids of one text, or a list of such lists.',
    }),
    skip_special_tokens: z
      .boolean()
      .nullable()
      .optional()
      .describe('Whether special tokens are left out of the texts. Default: true.'),
  })
  .meta({ id: 'TeiDecodeRequest' });

export type CuttingOptions = Pick<
  z.output<typeof embedRequestSchema>,
  'truncate' | 'truncation_direction' | 'prompt_name'
>;
export type EmbedRequest = z.output<typeof embedRequestSchema>;
