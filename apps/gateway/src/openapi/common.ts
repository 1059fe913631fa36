import { type ErrorCode, PRIORITIES } from '@millrace/shared';
import { z } from 'zod';
import type { ApiHeader, ApiParameter, ApiResponse } from '../protocols/api-description.js';
import { jobSchema } from '../protocols/jobs/schema.js';

/** What many operations have alike. */

/** A model that is there by default, and does not need to be. */
const EXAMPLE_MODEL = 'all-minilm-l6-v2';

/** By the name that the paths give them. */
export const PATH_PARAMETERS: Record<string, Omit<ApiParameter, 'name' | 'in'>> = {
  model: {
    description: 'A model’s name. `GET /v1/models` lists them.',
    schema: z.string().min(1),
    example: EXAMPLE_MODEL,
  },
  version: {
    description: 'A version of the model. Without one, the newest.',
    schema: z.string().min(1),
    example: '1',
  },
  job: {
    description: 'The id of a request that is kept: of its 202, or its `X-Request-Id`.',
    schema: z.uuid(),
    example: 'cee46843-da1c-479c-9949-22175c97fd3e',
  },
  file: {
    description: 'The id of a file.',
    schema: z.string().regex(/^file-[0-9a-f]{32}$/),
    example: 'file-0f7f1a6c9b1e4d7f8a6b5c4d3e2f1a0b',
  },
  batch: {
    description: 'The id of a batch.',
    schema: z.string().regex(/^batch_[0-9a-f]{32}$/),
    example: 'batch_cee46843da1c479c994922175c97fd3e',
  },
  asset: {
    description: 'A file’s name.',
    schema: z.string().min(1),
    example: 'swagger-ui.css',
  },
};

/** Headers of every inference. */
export const INFER_PARAMETERS: readonly ApiParameter[] = [
  {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Names the request, 1 to 255 printable ASCII characters. A retry under the same key gets the first answer; another request under it is refused with 422.',
    schema: z.string().regex(/^[\x20-\x7e]{1,255}$/),
  },
  {
    name: 'Prefer',
    in: 'header',
    description:
      '`wait=5` (RFC 7240): how many seconds to wait for the answer, where the body does not say. `respond-async`: keep the request and answer 202, at once or after that time.',
    schema: z.string(),
  },
  {
    name: 'Millrace-Priority',
    in: 'header',
    description: 'What goes first: `interactive` (the default), `normal` or `bulk`.',
    schema: z.enum(Object.keys(PRIORITIES)),
  },
  {
    name: 'Millrace-Keep-Ms',
    in: 'header',
    description: 'With `respond-async`: how long the request may take and its result is kept, in ms.',
    schema: z.int().min(1),
  },
  {
    name: 'Millrace-Not-Before',
    in: 'header',
    description: 'With `respond-async`: a time before which it must not run.',
    schema: z.iso.datetime({ offset: true }),
  },
  {
    name: 'Millrace-Callback',
    in: 'header',
    description: 'With `respond-async`: a URL that is told of the end, where the server takes callbacks.',
    schema: z.url(),
  },
  {
    name: 'traceparent',
    in: 'header',
    description: 'The trace that this request belongs to (W3C Trace Context).',
    schema: z.string(),
  },
];

/** Errors of any request at all, on its way in. */
export const COMMON_ERRORS: readonly ErrorCode[] = ['invalid_http', 'headers_too_large', 'internal'];

/** Errors of requests that need a key, where keys are asked for. */
export const KEY_ERRORS: readonly ErrorCode[] = ['unauthorized', 'forbidden'];

/** Errors that any inference may end in, at every door. */
export const INFER_ERRORS: readonly ErrorCode[] = [
  'invalid_json',
  'invalid_encoding',
  'nesting_too_deep',
  'invalid_input',
  'too_many_items',
  'text_too_long',
  'model_not_found',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'idempotency_key_reused',
  'queue_full',
  'job_limit',
  'overloaded',
  'inference_failed',
  'item_quarantined',
  'contract_version_unsupported',
  'queue_unavailable',
  'no_worker',
  'shutting_down',
  'deadline_exceeded',
];

const SECONDS = z.int().min(0);

/** Headers of every answer. */
export const ANSWER_HEADERS: readonly ApiHeader[] = [
  { name: 'X-Request-Id', description: 'The server’s own id of this request.', schema: z.string() },
  {
    name: 'Server-Timing',
    description: 'Milliseconds of each stage that the request went through, and their total.',
    schema: z.string(),
  },
];

export const REPLAYED: ApiHeader = {
  name: 'Idempotency-Replayed',
  description: '`true` where this is the first answer to the request of that key, once more.',
  schema: z.literal('true'),
};

/** The answer to an inference that is kept. */
export const KEPT: ApiResponse = {
  description: 'The request is kept; its job says where it stands.',
  contents: [{ contentType: 'application/json', schema: jobSchema }],
  headers: [
    { name: 'Location', description: 'Where to ask for the job.', schema: z.string() },
    {
      name: 'Preference-Applied',
      description: 'Which preference was met.',
      schema: z.literal('respond-async'),
    },
  ],
};

/** Headers of errors, by status. */
export const ERROR_HEADERS: Readonly<Record<number, ApiHeader>> = {
  401: { name: 'WWW-Authenticate', description: 'How to send the key.', schema: z.string() },
  429: { name: 'Retry-After', description: 'Seconds after which to try again.', schema: SECONDS },
  503: { name: 'Retry-After', description: 'Seconds after which to try again.', schema: SECONDS },
};

export const TITLE = 'Millrace';

export const DESCRIPTION = `Models on a durable queue: what was accepted comes back.

A request waits for its answer; how long, it may say. Every answer has the headers \`X-Request-Id\` and
\`Server-Timing\`. Errors with 429 and 503 say in \`Retry-After\` when to try again. A body may
come in gzip or deflate, as its \`Content-Encoding\` says.

What can't be read as HTTP at all, or comes over one connection too many, is answered as problem details (RFC 9457)
whatever its address: 400, 408, 431 or 503. A method that an address does not have is 405 with \`Allow\`.`;

export const KEYS_DESCRIPTION = `

An API key is asked for: \`Authorization: Bearer KEY\`, or \`X-API-Key: KEY\`.`;
