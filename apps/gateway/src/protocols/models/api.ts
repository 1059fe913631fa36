import type { DoorApi } from '../api-description.js';
import { openaiErrorSchema } from '../openai/answers.js';
import { openaiErrors } from '../openai/errors.js';
import { modelListSchema, modelSchema } from './schema.js';

export const modelsApi: DoorApi = {
  title: 'Models',
  description: 'The models that are served, in the shape of OpenAI’s list, with what is known of them added.',
  errors: openaiErrors,
  errorSchema: openaiErrorSchema,
  operations: [
    {
      id: 'listModels',
      method: 'get',
      path: '/v1/models',
      summary: 'List the models',
      responses: {
        200: {
          description: 'Every model that is served, or configured and awaited.',
          contents: [{ contentType: 'application/json', schema: modelListSchema }],
        },
      },
    },
    {
      id: 'getModel',
      method: 'get',
      path: '/v1/models/:model',
      summary: 'Describe one model',
      responses: {
        200: {
          description: 'The model.',
          contents: [{ contentType: 'application/json', schema: modelSchema }],
        },
      },
      errors: ['model_not_found', 'no_worker'],
    },
  ],
};
