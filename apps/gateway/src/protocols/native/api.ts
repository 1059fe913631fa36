import { z } from 'zod';
import { BYTES, type DoorApi } from '../api-description.js';
import { nativeErrors } from './problem.js';
import { LINES_TYPE, ORDERS, predictAnswerSchema, predictRequestSchema, problemSchema } from './schema.js';

export const PREDICT_PATH = '/v1/models/:model{/versions/:version}/predict';

export const nativeApi: DoorApi = {
  title: 'Predict',
  description:
    'The native door: natural values in, one or a list; an output for each. Errors are problem details (RFC 9457) that name the field at fault.',
  errors: nativeErrors,
  errorSchema: problemSchema,
  operations: [
    {
      id: 'predict',
      method: 'post',
      path: PREDICT_PATH,
      summary: 'Run a model on texts or tensors',
      description:
        'A body of `application/x-ndjson` (or `application/jsonl`) is a stream: each of its lines is such a request, and is answered by a line, `{"line": 1, "id": ..., "outputs": ...}` or `{"line": 1, "error": ...}` with the problem details, while more of them come. Read while you send: no more is read than a bounded number of lines that are not answered. `Idempotency-Key` and `Prefer: respond-async` are refused for streams.',
      infers: true,
      parameters: [
        {
          name: 'order',
          in: 'query',
          description:
            'Of a stream: whether its lines are answered in their order (`input`, the default) or as they are done (`finished`).',
          schema: z.enum(ORDERS),
        },
      ],
      request: {
        contents: [
          {
            contentType: 'application/json',
            schema: predictRequestSchema,
            examples: {
              one: { summary: 'One sentence', value: { inputs: 'That is a happy person' } },
              list: {
                summary: 'A list, waiting at most two seconds',
                value: { inputs: ['That is a happy person', 'That is a happy dog'], waitMs: 2000 },
              },
            },
          },
          { contentType: LINES_TYPE, schema: BYTES },
          { contentType: 'application/jsonl', schema: BYTES },
        ],
      },
      responses: {
        200: {
          description: 'An output for each input, in order.',
          contents: [
            {
              contentType: 'application/json',
              schema: predictAnswerSchema,
              examples: {
                tensors: {
                  summary: 'The model identity, to {"inputs": [{"fp32": [1, 2]}, {"fp32": [3, 4]}]}',
                  value: {
                    id: 'cee46843-da1c-479c-9949-22175c97fd3e',
                    model: 'identity',
                    version: '1',
                    outputs: [{ fp32_out: [1, 2] }, { fp32_out: [3, 4] }],
                    timings: {
                      admit: 0.633,
                      queue: 2.128,
                      preprocess: 0.091,
                      window: 0.094,
                      infer: 0.429,
                      postprocess: 0.06,
                      reply: 0.003,
                      total: 4.169,
                    },
                  },
                },
              },
            },
            { contentType: LINES_TYPE, schema: BYTES },
          ],
        },
      },
    },
  ],
};
