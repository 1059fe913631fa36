import { MillraceError } from '@millrace/shared';
import { z } from 'zod';
import type { ApiContent, ApiHeader, ApiOperation, DoorApi } from '../api-description.js';
import {
  decodedSchema,
  embeddingsOrSimilaritiesSchema,
  embeddingsSchema,
  infoSchema,
  similaritiesSchema,
  tokensSchema,
} from './answers.js';
import { teiErrorSchema, teiErrors } from './error-body.js';
import {
  decodeRequestSchema,
  embedRequestSchema,
  similarityRequestSchema,
  tokenizeRequestSchema,
} from './schema.js';

const JSON_TYPE = 'application/json';

/** For models that are asked by their name. */
export const TEI_MODEL_PATH = '/models/:model{/versions/:version}';

/** What models are asked for elsewhere, and none here can do. */
export const MISSING = {
  embed_all: 'Embeddings of single tokens are not to be had: models answer with one vector a text.',
  embed_sparse: 'Sparse embeddings are not to be had: models answer with dense vectors.',
  predict: 'Classification is not to be had here: POST to /v1/models/{model}/predict for any other model.',
  rerank: 'Reranking is not to be had here: /similarity compares a sentence with others.',
} as const;

const COMPUTED: ApiHeader = {
  name: 'x-compute-tokens',
  description: 'Tokens that the model was run on.',
  schema: z.int().min(0),
};

/** An id that the tokenizer has not has a status of its own. */
const NO_SUCH_TOKEN = new MillraceError('invalid_input', 'inputs: the vocabulary has no token 99999999.', {
  field: 'inputs',
  index: 0,
  items: [{ index: 0, code: 'invalid_input', message: 'The vocabulary has no token 99999999.' }],
});

const TEXTS: ApiContent = {
  contentType: JSON_TYPE,
  schema: embedRequestSchema,
  examples: {
    list: {
      summary: 'Two sentences',
      value: { inputs: ['That is a happy person', 'That is a happy dog'], truncate: true },
    },
  },
};
const SENTENCES = {
  summary: 'A sentence and others',
  value: {
    inputs: {
      source_sentence: 'That is a happy person',
      sentences: ['That is a happy dog', 'Today is a sunny day'],
    },
  },
};

/** What the operations of both kinds of addresses have in common. */
type Shape = Omit<ApiOperation, 'path' | 'id'> & { id: string };

function posting(
  id: string,
  summary: string,
  request: ApiContent,
  schema: z.ZodType,
  more: Partial<Shape> = {},
): Shape {
  return {
    id,
    method: 'post',
    summary,
    infers: true,
    request: { contents: [request] },
    responses: {
      200: {
        description: 'An entry for each input, in order.',
        contents: [{ contentType: JSON_TYPE, schema }],
      },
    },
    errors: ['unsupported', NO_SUCH_TOKEN],
    ...more,
  };
}

function withTokens(shape: Shape): Shape {
  const [[status, response] = []] = Object.entries(shape.responses);
  return response
    ? { ...shape, responses: { [Number(status)]: { ...response, headers: [COMPUTED] } } }
    : shape;
}

const any = withTokens(
  posting(
    'teiAny',
    'Embed texts, or compare a sentence with others',
    {
      contentType: JSON_TYPE,
      schema: z
        .union([embedRequestSchema, similarityRequestSchema])
        .meta({ id: 'TeiEmbedOrSimilarityRequest' }),
      examples: { ...TEXTS.examples, sentences: SENTENCES },
    },
    embeddingsOrSimilaritiesSchema,
    { description: 'Where Hugging Face’s `InferenceClient` posts both.' },
  ),
);

const SHAPES: readonly (readonly [path: string, shape: Shape])[] = [
  ['embed', withTokens(posting('teiEmbed', 'Embed texts', TEXTS, embeddingsSchema))],
  [
    'similarity',
    withTokens(
      posting(
        'teiSimilarity',
        'Compare a sentence with others',
        { contentType: JSON_TYPE, schema: similarityRequestSchema, examples: { sentences: SENTENCES } },
        similaritiesSchema,
      ),
    ),
  ],
  [
    'tokenize',
    posting(
      'teiTokenize',
      'Read the tokens of texts',
      {
        contentType: JSON_TYPE,
        schema: tokenizeRequestSchema,
        examples: { one: { summary: 'One sentence', value: { inputs: 'That is a happy person' } } },
      },
      tokensSchema,
    ),
  ],
  [
    'decode',
    posting(
      'teiDecode',
      'Read the text of token ids',
      {
        contentType: JSON_TYPE,
        schema: decodeRequestSchema,
        examples: { one: { summary: '"that is"', value: { ids: [2008, 2003] } } },
      },
      decodedSchema,
    ),
  ],
  ...Object.entries(MISSING).map(([path, reason]): [string, Shape] => [
    path,
    {
      id: `tei_${path}`.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      method: 'post',
      summary: `Refused: ${reason.split(':')[0]?.replace(/ are not to be had.*| is not to be had.*/, '')} is not to be had`,
      responses: {},
      errors: ['unsupported', 'model_not_found', 'no_worker', 'invalid_input'],
    },
  ]),
  [
    'info',
    {
      id: 'teiInfo',
      method: 'get',
      summary: 'Describe the model',
      responses: {
        200: { description: 'The model.', contents: [{ contentType: JSON_TYPE, schema: infoSchema }] },
      },
      errors: ['model_not_found', 'no_worker', 'invalid_input'],
    },
  ],
];

const health: Shape = {
  id: 'teiHealth',
  method: 'get',
  summary: 'Ask whether the model can be asked',
  responses: {
    200: {
      description: 'It can.',
      contents: [{ contentType: 'text/plain', schema: z.literal('').meta({ id: 'Empty' }) }],
    },
  },
};

/** An operation of the model of the setting, and the same of a model by its name. */
function both(unnamed: string, named: string, shape: Shape): ApiOperation[] {
  return [
    { ...shape, path: unnamed },
    { ...shape, id: `${shape.id}Of`, summary: `${shape.summary} (a model by its name)`, path: named },
  ];
}

export const teiApi: DoorApi = {
  title: 'text-embeddings-inference',
  description:
    'What clients of text-embeddings-inference ask for. An address without a model’s name is for the one of the setting `MILLRACE_TEI_MODEL`, or else the first that embeds texts. Statuses are that server’s: 413 for what is not valid, 422 for what the tokenizer has not, 424 for a model that failed.',
  errors: teiErrors,
  errorSchema: teiErrorSchema,
  operations: [
    ...both('/', TEI_MODEL_PATH, any),
    ...SHAPES.flatMap(([path, shape]) => both(`/${path}`, `${TEI_MODEL_PATH}/${path}`, shape)),
    { ...health, path: '/health', open: true, errors: ['no_worker'] },
    {
      ...health,
      id: 'teiHealthOf',
      path: `${TEI_MODEL_PATH}/health`,
      summary: 'Ask whether a model can be asked',
      errors: ['model_not_found', 'no_worker', 'invalid_input'],
    },
  ],
};
