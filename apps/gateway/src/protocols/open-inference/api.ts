import { z } from 'zod';
import { type ApiOperation, type ApiResponse, BYTES, type DoorApi } from '../api-description.js';
import {
  inferAnswerSchema,
  modelMetadataSchema,
  modelReadySchema,
  openInferenceErrorSchema,
  repositoryIndexAnswerSchema,
  serverMetadataSchema,
  statisticsSchema,
} from './answers.js';
import { JSON_LENGTH_HEADER } from './binary-body.js';
import { openInferenceErrors } from './error-body.js';
import { inferRequestSchema, repositoryIndexSchema } from './schema.js';

export const MODEL_PATH = '/v2/models/:model{/versions/:version}';
const JSON_TYPE = 'application/json';
const BINARY_TYPE = 'application/octet-stream';

/** As the header has it. */
const jsonLength = z.string().regex(/^[0-9]{1,15}$/);

const infer: ApiOperation = {
  id: 'infer',
  method: 'post',
  path: `${MODEL_PATH}/infer`,
  summary: 'Run a model on tensors',
  description:
    'All or nothing: one input that fails fails the request.\n\nWith the binary tensor extension a body is JSON and then the bytes of tensors, and the header `Inference-Header-Content-Length` says how long the JSON is; 0: the whole body is the one input’s tensor.',
  infers: true,
  parameters: [
    {
      name: JSON_LENGTH_HEADER,
      in: 'header',
      description: 'Bytes of JSON in front of binary tensors.',
      schema: jsonLength,
    },
  ],
  request: {
    contents: [
      {
        contentType: JSON_TYPE,
        schema: inferRequestSchema,
        examples: {
          text: {
            summary: 'One sentence',
            value: {
              inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: ['That is a happy person'] }],
            },
          },
        },
      },
      { contentType: BINARY_TYPE, schema: BYTES },
    ],
  },
  responses: {
    200: {
      description: 'The outputs that were asked for, in order.',
      contents: [
        { contentType: JSON_TYPE, schema: inferAnswerSchema },
        { contentType: BINARY_TYPE, schema: BYTES },
      ],
      headers: [
        {
          name: JSON_LENGTH_HEADER,
          description: 'Bytes of JSON in front of binary tensors.',
          schema: jsonLength,
        },
      ],
    },
  },
  errors: ['unsupported'],
};

function answers(description: string, schema: z.ZodType): ApiResponse {
  return { description, contents: [{ contentType: JSON_TYPE, schema }] };
}

export const openInferenceApi: DoorApi = {
  title: 'Open Inference Protocol',
  description:
    'Version 2 of the protocol that clients of KServe, Triton and MLServer speak, with Triton’s extensions for binary tensors, the model repository, the schedule policy and statistics.',
  errors: openInferenceErrors,
  errorSchema: openInferenceErrorSchema,
  operations: [
    infer,
    {
      id: 'modelMetadata',
      method: 'get',
      path: MODEL_PATH,
      summary: 'Describe a model’s tensors',
      responses: { 200: answers('The model’s tensors.', modelMetadataSchema) },
      errors: ['model_not_found', 'no_worker'],
    },
    {
      id: 'modelReady',
      method: 'get',
      path: `${MODEL_PATH}/ready`,
      summary: 'Ask whether a model is ready',
      responses: {
        200: answers('A worker serves it.', modelReadySchema),
        503: answers('No worker serves it now.', z.union([modelReadySchema, openInferenceErrorSchema])),
      },
      errors: ['model_not_found'],
    },
    {
      id: 'modelStatistics',
      method: 'get',
      path: `${MODEL_PATH}/stats`,
      summary: 'Read a model’s statistics',
      responses: { 200: answers('Counts and times since this gateway was started.', statisticsSchema) },
      errors: ['model_not_found', 'no_worker'],
    },
    {
      id: 'allStatistics',
      method: 'get',
      path: '/v2/models/stats',
      summary: 'Read the statistics of all models',
      responses: { 200: answers('Counts and times since this gateway was started.', statisticsSchema) },
    },
    {
      id: 'serverMetadata',
      method: 'get',
      path: '/v2',
      summary: 'Describe the server',
      responses: { 200: answers('Name, version and extensions.', serverMetadataSchema) },
    },
    {
      id: 'repositoryIndex',
      method: 'post',
      path: '/v2/repository/index',
      summary: 'List the models and whether they are ready',
      request: {
        optional: true,
        contents: [
          {
            contentType: JSON_TYPE,
            schema: repositoryIndexSchema,
            examples: { ready: { summary: 'Those that can be asked now', value: { ready: true } } },
          },
        ],
      },
      responses: { 200: answers('Every model and version.', repositoryIndexAnswerSchema) },
      errors: [
        'invalid_json',
        'invalid_encoding',
        'nesting_too_deep',
        'invalid_input',
        'request_timeout',
        'body_too_large',
        'unsupported_media_type',
        'queue_full',
      ],
    },
    ...(['load', 'unload'] as const).map(
      (verb): ApiOperation => ({
        id: `${verb}Model`,
        method: 'post',
        path: `/v2/repository/models/:model/${verb}`,
        summary: `Refused: a worker ${verb}s its models when it ${verb === 'load' ? 'starts' : 'ends'}`,
        responses: {},
        errors: ['unsupported'],
      }),
    ),
  ],
};
