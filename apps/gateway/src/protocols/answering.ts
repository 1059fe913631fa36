import type { Request, Response } from 'express';
import { contextOf } from '../http/context.js';
import { renderError } from '../http/errors.js';
import { respond } from '../http/respond.js';
import type { InferRequest } from '../inference/request.js';
import type { AnswerOnce, NamedOnce } from './answer-once.js';
import type { AnswerWriter } from './answer-writer.js';

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

/**
 * The way of every HTTP door from what it has read to the answer: infer, write, respond; under an
 * `Idempotency-Key` only once.
 */
export function answering(answerOnce: AnswerOnce): Answering {
  return async (req, res, write, { request, body, asked }) => {
    const key = req.headers['idempotency-key'];
    const named: NamedOnce | undefined =
      key === undefined
        ? undefined
        : {
            key: String(key),
            identity: {
              method: req.method,
              path: req.path,
              reading: [
                req.headers['content-type'],
                req.get('inference-header-content-length'),
                request.durable ? 'respond-async' : undefined,
              ],
              body,
            },
            refuse: (error) => renderError(error, contextOf(res)),
          };
    const { answer, timings, replayed } = await answerOnce(write, request, asked, named);
    if (replayed) res.setHeader('Idempotency-Replayed', 'true');
    respond(res, answer, timings);
  };
}
