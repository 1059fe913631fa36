/**
 * The one table of error codes. Doors only translate: each renders the same code in its own shape.
 *
 * `status` is the HTTP status, `retryable` says whether the same request may succeed later, `fault` says
 * whose it is (a client's fault is never logged as an error), `text` is what a client may read when the
 * thrower gave no sentence of its own.
 */
export const ERRORS = {
  invalid_http: { status: 400, retryable: false, fault: 'client', text: 'The request is not valid HTTP.' },
  invalid_json: { status: 400, retryable: false, fault: 'client', text: 'The body is not valid JSON.' },
  invalid_encoding: {
    status: 400,
    retryable: false,
    fault: 'client',
    text: 'The bytes of the body are not what they should be.',
  },
  nesting_too_deep: {
    status: 400,
    retryable: false,
    fault: 'client',
    text: 'The body nests deeper than allowed.',
  },
  invalid_input: { status: 400, retryable: false, fault: 'client', text: 'The request is not valid.' },
  too_many_items: {
    status: 400,
    retryable: false,
    fault: 'client',
    text: 'The request has more items than allowed.',
  },
  text_too_long: {
    status: 400,
    retryable: false,
    fault: 'client',
    text: 'The text has more tokens than the model takes.',
  },
  empty_file: { status: 400, retryable: false, fault: 'client', text: 'The file has no lines.' },
  unauthorized: {
    status: 401,
    retryable: false,
    fault: 'client',
    text: 'An API key is required: send "Authorization: Bearer KEY".',
  },
  forbidden: { status: 403, retryable: false, fault: 'client', text: 'This API key may not do that.' },
  not_found: {
    status: 404,
    retryable: false,
    fault: 'client',
    text: 'There is nothing at this address. GET /docs shows what there is.',
  },
  model_not_found: { status: 404, retryable: false, fault: 'client', text: 'No such model is served here.' },
  job_not_found: {
    status: 404,
    retryable: false,
    fault: 'client',
    text: 'There is no such job, or it belongs to another API key.',
  },
  file_not_found: {
    status: 404,
    retryable: false,
    fault: 'client',
    text: 'There is no such file, or it belongs to another API key.',
  },
  batch_not_found: {
    status: 404,
    retryable: false,
    fault: 'client',
    text: 'There is no such batch, or it is not yours.',
  },
  method_not_allowed: {
    status: 405,
    retryable: false,
    fault: 'client',
    text: 'This address does not take that method.',
  },
  request_timeout: {
    status: 408,
    retryable: true,
    fault: 'client',
    text: 'The request did not arrive within the time allowed.',
  },
  job_ended: { status: 409, retryable: false, fault: 'client', text: 'The job has ended already.' },
  batch_ended: { status: 409, retryable: false, fault: 'client', text: 'The batch has ended already.' },
  job_cancelled: { status: 409, retryable: false, fault: 'client', text: 'The job was cancelled.' },
  job_expired: {
    status: 410,
    retryable: false,
    fault: 'client',
    text: 'The result of this job was kept as long as promised, and is gone.',
  },
  batch_expired: {
    status: 410,
    retryable: false,
    fault: 'client',
    text: 'The completion window of the batch ended before this line was run.',
  },
  body_too_large: {
    status: 413,
    retryable: false,
    fault: 'client',
    text: 'The body is larger than allowed.',
  },
  unsupported_media_type: {
    status: 415,
    retryable: false,
    fault: 'client',
    text: 'The content type is not one this address takes.',
  },
  range_not_satisfiable: {
    status: 416,
    retryable: false,
    fault: 'client',
    text: 'The file has no bytes in this range.',
  },
  idempotency_key_reused: {
    status: 422,
    retryable: false,
    fault: 'client',
    text: 'This Idempotency-Key was sent before with another request. Send a new key.',
  },
  queue_full: {
    status: 429,
    retryable: true,
    fault: 'load',
    text: 'More work is waiting than the queue may hold. Try again later.',
  },
  job_limit: {
    status: 429,
    retryable: true,
    fault: 'load',
    text: 'This API key keeps as many jobs, or as many bytes of them, as it may. Try again when some have gone.',
  },
  file_limit: {
    status: 429,
    retryable: true,
    fault: 'load',
    text: 'This API key keeps as many files, or as many bytes of them, as it may. Delete some, or try again when some have gone.',
  },
  overloaded: {
    status: 429,
    retryable: true,
    fault: 'load',
    text: 'So much work is waiting that no answer can be expected in time. Try again later.',
  },
  too_many_attempts: {
    status: 429,
    retryable: true,
    fault: 'client',
    text: 'Too many failed attempts. Try again later.',
  },
  headers_too_large: {
    status: 431,
    retryable: false,
    fault: 'client',
    text: 'The headers are larger than allowed.',
  },
  cancelled: {
    status: 499,
    retryable: true,
    fault: 'client',
    text: 'The request was cancelled before it was answered.',
  },
  internal: {
    status: 500,
    retryable: true,
    fault: 'server',
    text: 'Something failed in the server. Its log has the cause under the request id.',
  },
  inference_failed: {
    status: 500,
    retryable: false,
    fault: 'server',
    text: 'The model failed on this input.',
  },
  job_lost: {
    status: 500,
    retryable: true,
    fault: 'server',
    text: 'The work of this job is lost: Redis came back without it. Send the request again.',
  },
  item_quarantined: {
    status: 500,
    retryable: false,
    fault: 'server',
    text: 'Workers died while running this input. It will not be tried again.',
  },
  contract_version_unsupported: {
    status: 500,
    retryable: false,
    fault: 'server',
    text: 'Gateway and worker are of versions that do not understand each other.',
  },
  unsupported: { status: 501, retryable: false, fault: 'client', text: 'This is not supported here.' },
  queue_unavailable: {
    status: 503,
    retryable: true,
    fault: 'server',
    text: 'The queue cannot be reached. Try again in a moment.',
  },
  storage_unavailable: {
    status: 503,
    retryable: true,
    fault: 'server',
    text: 'The storage of files cannot be reached. Try again in a moment.',
  },
  too_many_connections: {
    status: 503,
    retryable: true,
    fault: 'load',
    text: 'This gateway has as many connections as it may. Try again in a moment.',
  },
  no_worker: { status: 503, retryable: true, fault: 'server', text: 'No worker serves this model now.' },
  shutting_down: {
    status: 503,
    retryable: true,
    fault: 'server',
    text: 'This gateway is shutting down. Try again.',
  },
  deadline_exceeded: {
    status: 504,
    retryable: true,
    fault: 'load',
    text: 'The answer did not come within the time that the request allowed. Allow more, or send less at once.',
  },
  storage_full: {
    status: 507,
    retryable: true,
    fault: 'server',
    text: 'The storage of files is full. Try again when there is room.',
  },
} as const satisfies Record<string, ErrorSpec>;

export interface ErrorSpec {
  readonly status: number;
  readonly retryable: boolean;
  readonly fault: 'client' | 'server' | 'load';
  readonly text: string;
}

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}
