import { z } from 'zod';

/** The bodies of text-embeddings-inference's answers, as they are documented. */

export const embeddingsSchema = z
  .array(z.array(z.number().nullable()).min(1))
  .describe('A list of numbers for each input, in order.')
  .meta({ id: 'TeiEmbeddings' });

export const similaritiesSchema = z
  .array(z.number().nullable())
  .describe('The cosine of the source sentence and each other, in order.')
  .meta({ id: 'TeiSimilarities' });

export const embeddingsOrSimilaritiesSchema = z
  .union([embeddingsSchema, similaritiesSchema])
  .meta({ id: 'TeiEmbeddingsOrSimilarities' });

const token = z
  .strictObject({
    id: z.int().min(0),
    text: z.string(),
    special: z.boolean().describe('Whether the model wants it round a text, and the text has it not.'),
    start: z.int().min(0).nullable().describe('Where it begins in the text; `null` for a special one.'),
    stop: z.int().min(0).nullable().describe('Where it ends.'),
  })
  .meta({ id: 'TeiToken' });

export const tokensSchema = z
  .array(z.array(token))
  .describe('A list of tokens for each text, in order.')
  .meta({ id: 'TeiTokens' });

export const decodedSchema = z
  .array(z.string())
  .describe('A text for each list of ids, in order.')
  .meta({ id: 'TeiTexts' });

const count = z.int().min(0).nullable();

export const infoSchema = z
  .strictObject({
    model_id: z.string(),
    model_sha: z.null(),
    model_dtype: z.string().nullable(),
    model_type: z.strictObject({ embedding: z.strictObject({ pooling: z.string().nullable() }) }),
    max_concurrent_requests: z.int().min(0).describe('Inputs that may wait for the model.'),
    max_input_length: count.describe('Most tokens of a text.'),
    max_batch_tokens: count,
    max_batch_requests: count,
    max_client_batch_size: z.int().min(1).describe('Most inputs of one request.'),
    auto_truncate: z.boolean().describe('Whether longer texts are cut unless a request says otherwise.'),
    tokenization_workers: count,
    version: z.string(),
    sha: z.null(),
    docker_label: z.null(),
  })
  .meta({ id: 'TeiInfo', description: '`null` where there is no such thing to tell.' });
