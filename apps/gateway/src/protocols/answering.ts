import { MillraceError, type RedisClock } from '@millrace/shared';
import type { Request, Response } from 'express';
import { contextOf } from '../http/context.js';
import { renderError } from '../http/errors.js';
import { type Answer, respond, type Timing, timingsOf } from '../http/respond.js';
import type { FinalOutcome, Idempotency } from '../idempotency/idempotency.js';
import type { Infer } from '../inference/infer.js';
import { failIfAnyFailed } from '../inference/item-errors.js';
import type { InferRequest, InferResult } from '../inference/request.js';

/** How a door writes an answer; `asked` is what one request asked of the writing. */
export type AnswerWriter<Asked> = (
  result: InferResult,
  timings: readonly Timing[],
  asked: Asked,
) => Omit<Answer, 'status'>;

/** A request as a door has read it. */
export interface ReadRequest<Asked> {
  body: Buffer;
  request: InferRequest;
  asked: Asked;
}

export type Answering = <Asked>(
  req: Request,
  res: Response,
  write: AnswerWriter<Asked>,
  read: ReadRequest<Asked>,
) => Promise<void>;

/** Client faults that another try may not meet again: who asks, how long it took, how much was asked. */
const PASSING = new Set([401, 408, 429, 499]);

/**
 * The way of every door from what it has read to the answer: infer, write, respond; under an
 * `Idempotency-Key` only once.
 */
export function answering(infer: Infer, idempotency: Idempotency, clock: RedisClock): Answering {
  return async (req, res, write, read) => {
    const { request, body, asked } = read;
    const key = req.headers['idempotency-key'];
    if (key === undefined) {
      const result = await infer(request);
      if (!request.partial) failIfAnyFailed(result);
      const timings = timingsOf(result.stamps, request.stamps.received, clock.now());
      respond(res, { status: 200, ...write(result, timings, asked) }, timings);
      return;
    }

    let timings: Timing[] | undefined;
    const run = async (): Promise<Answer> => {
      const result = await infer(request);
      if (!request.partial) failIfAnyFailed(result);
      timings = timingsOf(result.stamps, request.stamps.received, clock.now());
      return { status: 200, ...write(result, timings, asked) };
    };
    const identity = {
      method: req.method,
      path: req.path,
      reading: [req.headers['content-type'], req.get('inference-header-content-length')],
      body,
    };
    const { answer, error, replayed } = await idempotency.once(String(key), identity, request, () =>
      run().then(
        (answer) => ({ answer }),
        (error: unknown) => finalError(error, res),
      ),
    );
    if (error) throw error;
    if (replayed) res.setHeader('Idempotency-Replayed', 'true');
    const own = replayed ? undefined : timings;
    respond(res, answer, own ?? timingsOf({}, request.stamps.received, clock.now()));
  };
}

/** @throws the error itself, unless the same request would meet it again. */
function finalError(error: unknown, res: Response): FinalOutcome {
  if (!(error instanceof MillraceError)) throw error;
  const { status } = error.spec;
  if (status >= 500 || PASSING.has(status)) throw error;
  return { error, answer: renderError(error, contextOf(res)) };
}
