import type { IncomingHttpHeaders } from 'node:http';
import type { ModelDescription, Operation, PriorityClass, Settings, Tensor } from '@millrace/shared';
import type { RequestContext } from '../http/context.js';
import type { InferRequest, RequestParameters } from '../inference/request.js';
import { type KeepLimits, readPreferences } from './preferences.js';

/** What a door's parser finds in a body. */
export interface ParsedInputs {
  inputs: Tensor[];
  itemCount: number;
  parameters: RequestParameters;
  /** How long to wait, in ms, where the body says so. */
  waitMs?: number;
  partial?: boolean;
  /** `interactive` where the body says nothing. */
  priority?: PriorityClass;
  operation?: Operation;
  /** Names an item as the client wrote it; absent: `inputs[INDEX]`. */
  fieldOf?: (index: number) => string;
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export type WaitLimits = Pick<Settings, 'waitMs' | 'maxWaitMs'> & KeepLimits;

/** The one inner request that every door makes. */
export function newInferRequest(
  context: RequestContext,
  headers: IncomingHttpHeaders,
  model: ModelDescription,
  parsed: ParsedInputs,
  limits: WaitLimits,
): InferRequest {
  const { durable, ...preferred } = readPreferences(headers, context.received, limits);
  // Who wants to be answered later waits only if asked to.
  const asked = parsed.waitMs ?? preferred.waitMs ?? (durable ? 0 : limits.waitMs);
  const waitMs = Math.min(asked, limits.maxWaitMs);
  const traceparent = traceparentOf(headers);
  return {
    requestId: context.requestId,
    model,
    inputs: parsed.inputs,
    itemCount: parsed.itemCount,
    parameters: parsed.parameters,
    waitMs,
    deadlineAt: durable ? durable.keepUntil : context.received + waitMs,
    tenant: context.tenant,
    priority: parsed.priority ?? preferred.priority ?? 'interactive',
    ...(durable ? { durable } : {}),
    ...(parsed.operation === undefined ? {} : { operation: parsed.operation }),
    ...(parsed.fieldOf === undefined ? {} : { fieldOf: parsed.fieldOf }),
    partial: parsed.partial ?? false,
    ...(traceparent === undefined ? {} : { traceparent }),
    stamps: { received: context.received },
    client: context.gone,
  };
}

/** The trace context of a request's headers, where it is well-formed. */
export function traceparentOf({ traceparent }: IncomingHttpHeaders): string | undefined {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined;
}
