import type { IncomingHttpHeaders } from 'node:http';
import type { ModelDescription, Operation, PriorityClass, Settings, Tensor } from '@millrace/shared';
import type { RequestContext } from '../http/context.js';
import type { InferRequest, RequestParameters } from '../inference/request.js';

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

const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=[,;]|$)/i;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export type WaitLimits = Pick<Settings, 'waitMs' | 'maxWaitMs'>;

/** The one inner request that every door makes. */
export function newInferRequest(
  context: RequestContext,
  headers: IncomingHttpHeaders,
  model: ModelDescription,
  parsed: ParsedInputs,
  limits: WaitLimits,
): InferRequest {
  const asked = parsed.waitMs ?? preferredWaitMs(headers.prefer) ?? limits.waitMs;
  const waitMs = Math.min(asked, limits.maxWaitMs);
  const { traceparent } = headers;
  return {
    requestId: context.requestId,
    model,
    inputs: parsed.inputs,
    itemCount: parsed.itemCount,
    parameters: parsed.parameters,
    waitMs,
    deadlineAt: context.received + waitMs,
    tenant: context.tenant,
    priority: parsed.priority ?? 'interactive',
    ...(parsed.operation === undefined ? {} : { operation: parsed.operation }),
    ...(parsed.fieldOf === undefined ? {} : { fieldOf: parsed.fieldOf }),
    partial: parsed.partial ?? false,
    ...(typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? { traceparent } : {}),
    stamps: { received: context.received },
    client: context.gone,
  };
}

/** `Prefer: wait=SECONDS` (RFC 7240) in ms; a preference that can't be read is ignored, as that RFC says. */
function preferredWaitMs(prefer: string | string[] | undefined): number | undefined {
  const header = Array.isArray(prefer) ? prefer.join(',') : prefer;
  const seconds = header === undefined ? undefined : PREFER_WAIT.exec(header)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
