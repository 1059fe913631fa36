import { MillraceError, type RedisClock } from '@millrace/shared';
import type { RequestContext } from '../../http/context.js';
import type { Answer } from '../../http/respond.js';
import type { ModelDirectory } from '../../inference/model-directory.js';
import type { StatisticsBook } from '../../inference/model-statistics.js';
import type { InferRequest } from '../../inference/request.js';
import type { AnswerOnce, NamedOnce } from '../answer-once.js';
import type { AnswerWriter } from '../answer-writer.js';
import { newInferRequest, type WaitLimits } from '../new-request.js';
import type { Call } from './call.js';
import type { InferMessage } from './infer-request.js';
import { type AskedOfAnswer, encodeInferResponse } from './infer-response.js';
import { parseInferMessage } from './parse.js';

export interface InferParts {
  clock: RedisClock;
  directory: ModelDirectory;
  answerOnce: AnswerOnce;
  /** What has become of this gateway's requests, by model. */
  statistics: StatisticsBook;
  settings: WaitLimits;
}

const CONTENT_TYPE = 'application/grpc';

const write: AnswerWriter<AskedOfAnswer> = (result, _timings, asked) => ({
  contentType: CONTENT_TYPE,
  body: encodeInferResponse(result, asked).end(),
});

/** A message of ModelInfer, read and compared with its model. */
export interface ReadCall {
  request: InferRequest;
  asked: AskedOfAnswer;
}

/** Runs one message of ModelInfer or ModelStreamInfer, and answers with a ModelInferResponse. */
export async function inferMessage(
  parts: InferParts,
  call: Call,
  context: RequestContext,
  message: InferMessage,
  named?: NamedOnce,
): Promise<Buffer> {
  const { request, asked } = read(parts, call, context, message);
  const { answer, replayed } = await parts.answerOnce(write, request, asked, named);
  if (replayed) call.replayed = true;
  if (answer.status !== 200) throw refusalOf(answer);
  return answer.body as Buffer;
}

function read(
  { clock, directory, settings }: InferParts,
  call: Call,
  context: RequestContext,
  message: InferMessage,
): ReadCall {
  const { modelName, modelVersion } = message;
  if (modelName === '') {
    throw new MillraceError('invalid_input', 'model_name must not be empty.', { field: 'model_name' });
  }
  const model = directory.resolve(modelName, modelVersion || undefined);
  context.model = model.name;
  const parsed = parseInferMessage(model, message);
  const traceparent = call.header('traceparent');
  // The client's deadline is by its clock's durations: what is left of it counts from now.
  const left = call.deadline - Date.now() + (clock.now() - context.received);
  const waitMs = Math.min(parsed.waitMs ?? (Number.isFinite(left) ? left : settings.waitMs), left);
  parsed.waitMs = Math.max(0, waitMs);
  const headers = traceparent === undefined ? {} : { traceparent };
  const request = newInferRequest(context, headers, model, parsed, settings);
  return { request, asked: parsed.asked };
}

/** The name that a unary call's metadata give its request. */
export function namedOnce(call: Call, message: Buffer): NamedOnce | undefined {
  const key = call.header('idempotency-key');
  if (key === undefined) return undefined;
  return {
    key,
    identity: { method: 'POST', path: call.path, reading: [], body: message },
    refuse: (error) => ({
      status: error.spec.status,
      contentType: CONTENT_TYPE,
      body: JSON.stringify(error),
    }),
  };
}

/** The fault that was kept under a request's name. */
function refusalOf({ body }: Answer): MillraceError {
  return MillraceError.from(JSON.parse(body.toString()));
}
