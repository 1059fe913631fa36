import { MillraceError, type RedisClock } from '@millrace/shared';
import { type Answer, type Timing, timingsOf } from '../http/respond.js';
import type { FinalOutcome, Idempotency, RequestIdentity } from '../idempotency/idempotency.js';
import type { Infer } from '../inference/infer.js';
import { failIfAnyFailed } from '../inference/item-errors.js';
import type { InferRequest, InferResult } from '../inference/request.js';

/** How a door writes an answer; `asked` is what one request asked of the writing. */
export type AnswerWriter<Asked> = (
  result: InferResult,
  timings: readonly Timing[],
  asked: Asked,
) => Omit<Answer, 'status'>;

/** The name that a client gave its request, so that it runs once. */
export interface NamedOnce {
  key: string;
  identity: RequestIdentity;
  /** A client's fault as the door writes it: it is kept and answered again. */
  refuse(error: MillraceError): Answer;
}

export interface Outcome {
  answer: Answer;
  timings: readonly Timing[];
  replayed: boolean;
}

export type AnswerOnce = <Asked>(
  write: AnswerWriter<Asked>,
  request: InferRequest,
  asked: Asked,
  named?: NamedOnce,
) => Promise<Outcome>;

/** Client faults that another try may not meet again: who asks, how long it took, how much was asked. */
const PASSING = new Set([401, 408, 429, 499]);

/** From a request that a door has read to its answer, whatever the protocol: infer and write, a named one only once. */
export function answeringOnce(infer: Infer, idempotency: Idempotency, clock: RedisClock): AnswerOnce {
  return async (write, request, asked, named) => {
    let timings: Timing[] | undefined;
    const run = async (): Promise<Answer> => {
      const result = await infer(request);
      if (!request.partial) failIfAnyFailed(result);
      timings = timingsOf(result.stamps, request.stamps.received, clock.now());
      return { status: 200, ...write(result, timings, asked) };
    };
    const own = (): Timing[] => timings ?? timingsOf({}, request.stamps.received, clock.now());
    if (!named) return { answer: await run(), timings: own(), replayed: false };

    const { key, identity, refuse } = named;
    const { answer, error, replayed } = await idempotency.once(key, identity, request, () =>
      run().then(
        (answer) => ({ answer }),
        (error: unknown) => finalError(error, refuse),
      ),
    );
    if (error) throw error;
    return {
      answer,
      timings: replayed ? timingsOf({}, request.stamps.received, clock.now()) : own(),
      replayed,
    };
  };
}

/** @throws the error itself, unless the same request would meet it again. */
function finalError(error: unknown, refuse: NamedOnce['refuse']): FinalOutcome {
  if (!(error instanceof MillraceError)) throw error;
  const { status } = error.spec;
  if (status >= 500 || PASSING.has(status)) throw error;
  return { error, answer: refuse(error) };
}
