import { MillraceError, type RedisClock } from '@millrace/shared';
import { type Answer, type Timing, timingsOf } from '../http/respond.js';
import type { FinalOutcome, Idempotency, RequestIdentity } from '../idempotency/idempotency.js';
import type { Infer } from '../inference/infer.js';
import { failIfAnyFailed } from '../inference/item-errors.js';
import type { InferRequest, InferResult } from '../inference/request.js';
import { type DurableRequests, errorOf } from '../jobs/durable.js';
import type { JobRecord } from '../jobs/job-record.js';
import type { JobStatus } from '../jobs/job-status.js';
import type { AnswerWriter } from './answer-writer.js';
import { acceptedAnswer } from './jobs/render.js';
import type { Writers } from './writers.js';

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

/** A request that goes on, and how it stood when that was last asked. */
interface Kept {
  record: JobRecord;
  status?: JobStatus;
}

/** Client faults that another try may not meet again: who asks, how long it took, how much was asked. */
const PASSING = new Set([401, 408, 429, 499]);

export interface AnsweringParts {
  infer: Infer;
  /** Keeps requests that outlive their clients. */
  durable: DurableRequests;
  writers: Writers;
  idempotency: Idempotency;
  clock: RedisClock;
}

/**
 * From a request that a door has read to its answer, whatever the protocol: infer and write, a named one only once.
 * A durable one is kept; its answer is that, or where to ask for it if it takes longer than the request waits.
 */
export function answeringOnce({ infer, durable, writers, idempotency, clock }: AnsweringParts): AnswerOnce {
  const keep = async <Asked>(
    write: AnswerWriter<Asked>,
    request: InferRequest,
    asked: Asked,
  ): Promise<InferResult | Kept> => {
    const record = await durable.submit(request, writers.recorded(write, asked));
    const leftMs = request.stamps.received + request.waitMs - clock.now();
    if (request.waitMs === 0 || leftMs <= 0) return { record };
    try {
      const status = await durable.standing(record, leftMs, request.client);
      const error = errorOf(status);
      if (error) throw error;
      return status.state === 'done' ? await durable.result(record) : { record, status };
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      // Redis is away. The request was accepted all the same, and its client must learn where to ask for it.
      return { record };
    }
  };

  return async (write, request, asked, named) => {
    let timings: Timing[] | undefined;
    const run = async (): Promise<Answer> => {
      const result = request.durable ? await keep(write, request, asked) : await infer(request);
      if ('record' in result) return acceptedAnswer(result.record, result.status);
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
