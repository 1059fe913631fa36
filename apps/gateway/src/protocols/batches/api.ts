import { z } from 'zod';
import type { ApiOperation, DoorApi } from '../api-description.js';
import { openaiErrorSchema } from '../openai/answers.js';
import { openaiErrors } from '../openai/errors.js';
import { batchListQuerySchema, batchListSchema, batchRequestSchema, batchSchema } from './schema.js';

const JSON_TYPE = 'application/json';
const BATCH = { contentType: JSON_TYPE, schema: batchSchema };

function turn(id: string, name: string, summary: string, description?: string): ApiOperation {
  return {
    id,
    method: 'post',
    path: `/v1/batches/:batch/${name}`,
    summary,
    ...(description === undefined ? {} : { description }),
    responses: { 200: { description: 'The batch.', contents: [BATCH] } },
    errors: ['queue_unavailable', 'batch_not_found', 'batch_ended'],
  };
}

export const batchesApi: DoorApi = {
  title: 'Batches',
  description:
    "Files of requests that are run behind all other work, in the shape of OpenAI's Batch API. A line may be for any inference address; its answer is in the output file, or in the error file where it failed, in the order of the input.",
  errors: openaiErrors,
  errorSchema: openaiErrorSchema,
  operations: [
    {
      id: 'createBatch',
      method: 'post',
      path: '/v1/batches',
      summary: 'Run a file of requests',
      parameters: [
        {
          name: 'Idempotency-Key',
          in: 'header',
          description: 'The same asking again gets the same batch.',
          schema: z.string(),
        },
      ],
      request: {
        contents: [
          {
            contentType: JSON_TYPE,
            schema: batchRequestSchema,
          },
        ],
      },
      responses: { 200: { description: 'The batch.', contents: [BATCH] } },
      errors: [
        'queue_unavailable',
        'unsupported_media_type',
        'invalid_json',
        'invalid_input',
        'file_not_found',
        'idempotency_key_reused',
        'job_limit',
      ],
    },
    {
      id: 'listBatches',
      method: 'get',
      path: '/v1/batches',
      summary: 'List your batches, the newest first',
      parameters: [
        {
          name: 'limit',
          in: 'query',
          description: batchListQuerySchema.shape.limit.description ?? '',
          schema: z.int().min(1).max(100),
        },
        {
          name: 'after',
          in: 'query',
          description: batchListQuerySchema.shape.after.description ?? '',
          schema: z.string(),
        },
      ],
      responses: {
        200: {
          description: 'A page of batches.',
          contents: [{ contentType: JSON_TYPE, schema: batchListSchema }],
        },
      },
      errors: ['queue_unavailable', 'invalid_input'],
    },
    {
      id: 'getBatch',
      method: 'get',
      path: '/v1/batches/:batch',
      summary: 'See where a batch stands',
      responses: { 200: { description: 'The batch.', contents: [BATCH] } },
      errors: ['queue_unavailable', 'batch_not_found'],
    },
    turn('cancelBatch', 'cancel', 'Take a batch back', 'What was answered by then is in its files.'),
    turn('pauseBatch', 'pause', 'Hold a batch', 'Nothing more of it is run until it is resumed.'),
    turn('resumeBatch', 'resume', 'Go on with a batch that is paused, or held up'),
  ],
};
