import { type GatewayMetrics, queueName, type RedisClock, spans } from '@millrace/shared';
import type { Admission } from '../admission/admission.js';
import type { Canceller } from './canceller.js';
import { gather } from './gather.js';
import type { JobBatcher } from './job-batcher.js';
import type { StatisticsBook } from './model-statistics.js';
import { planParts } from './parts.js';
import type { ReplyWaiter } from './reply-waiter.js';
import type { InferRequest, InferResult } from './request.js';

export interface InferenceParts {
  gatewayId: string;
  maxJobItems: number;
  clock: RedisClock;
  admission: Admission;
  waiter: ReplyWaiter;
  batcher: JobBatcher;
  canceller: Canceller;
  metrics: GatewayMetrics;
  statistics: StatisticsBook;
}

export type Infer = (request: InferRequest) => Promise<InferResult>;

/**
 * The whole path of a request: admit, cut into parts, register the waiter, enqueue, wait for the replies, gather them.
 * @returns a function that throws MillraceError `queue_full`, `queue_unavailable`, `deadline_exceeded`,
 * `cancelled` (the client went away), `shutting_down`, or `contract_version_unsupported`.
 */
export function inference(deps: InferenceParts): Infer {
  const { gatewayId, maxJobItems, clock, admission, waiter, batcher, canceller, metrics, statistics } = deps;
  return async (request) => {
    const queue = queueName(request.model.name, request.model.version);
    try {
      admission.admit(queue, request);
    } catch (error) {
      statistics.failed(request, clock.now());
      throw error;
    }
    const parts = planParts(request, { queue, replyTo: gatewayId, maxJobItems, now: clock.now() });
    const waitMs = request.deadlineAt - clock.now();
    const pending = waiter.register(request.requestId, queue, parts, waitMs, request.client);
    batcher.enqueue(queue, parts, request.priority, admission.aheadMs(queue, request)).then(
      () => {
        pending.accepted = true;
      },
      (error: Error) => pending.fail(error),
    );
    try {
      const replies = await pending.answer;
      const result = gather(request, parts, replies);
      statistics.answered(request, result, replies, clock.now());
      for (const { name, ms } of spans(result.stamps)) {
        metrics.stageSeconds.observe({ model: request.model.name, stage: name }, ms / 1000);
      }
      return result;
    } catch (error) {
      statistics.failed(request, clock.now());
      if (request.client.gone) metrics.clientsGone.inc({ model: request.model.name });
      void canceller.cancel(pending, request.deadlineAt);
      throw error;
    } finally {
      waiter.release(pending);
      admission.settled(queue, request);
    }
  };
}
