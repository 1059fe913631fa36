import type { DoorApi } from '../api-description.js';
import { embeddingsAnswerSchema, openaiErrorSchema } from './answers.js';
import { openaiErrors } from './errors.js';
import { embeddingsRequestSchema } from './schema.js';

const JSON_TYPE = 'application/json';

export const openaiApi: DoorApi = {
  title: 'OpenAI embeddings',
  description: 'What OpenAI’s clients ask for. All or nothing: one text that fails fails the request.',
  errors: openaiErrors,
  errorSchema: openaiErrorSchema,
  operations: [
    {
      id: 'createEmbeddings',
      method: 'post',
      path: '/v1/embeddings',
      summary: 'Embed texts',
      infers: true,
      request: {
        contents: [
          {
            contentType: JSON_TYPE,
            schema: embeddingsRequestSchema,
            examples: {
              one: {
                summary: 'One sentence',
                value: { model: 'all-minilm-l6-v2', input: 'That is a happy person' },
              },
              base64: {
                summary: 'Two sentences, the vectors as bytes',
                value: {
                  model: 'all-minilm-l6-v2',
                  input: ['That is a happy person', 'That is a happy dog'],
                  encoding_format: 'base64',
                },
              },
            },
          },
        ],
      },
      responses: {
        200: {
          description: 'A vector for each text, in order.',
          contents: [{ contentType: JSON_TYPE, schema: embeddingsAnswerSchema }],
        },
      },
      errors: ['unsupported'],
    },
  ],
};
