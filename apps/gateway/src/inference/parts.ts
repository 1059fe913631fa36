import {
  framePieces,
  MAX_INLINE_BYTES,
  type ModelDescription,
  type Part,
  PRIORITIES,
  payloadKey,
  sliceTensor,
} from '@millrace/shared';
import type { InferRequest } from './request.js';

/** An input frame that lies in Redis beside its job: its pieces are views of the request's body. */
export interface SidePayload {
  key: string;
  pieces: readonly Buffer[];
}

/** One part of a request, ready to be enqueued, and to be enqueued again should Redis forget it. */
export interface PlannedPart {
  firstItem: number;
  count: number;
  model: ModelDescription;
  data: Part;
  /** Input tensors that are too large to travel inside the job. */
  sidePayload?: SidePayload;
  /** Bytes of the input frame. */
  bytes: number;
  /** The job it travels in, once that is decided. */
  job?: PlannedJob;
}

/** A job as it is added: parts of one model and priority. */
export interface PlannedJob {
  jobId: string;
  parts: PlannedPart[];
}

export interface PartOptions {
  queue: string;
  /** Id of the gateway that waits for the replies, or that they are for any. */
  replyTo: string;
  /** Most items in one part. */
  maxJobItems: number;
  /** Now, in epoch ms of Redis's clock: the `enqueued` stamp. */
  now: number;
}

/** Cuts a request into parts of consecutive items, so that a long list spreads over workers. */
export function planParts(request: InferRequest, options: PartOptions): PlannedPart[] {
  const parts: PlannedPart[] = [];
  for (let firstItem = 0; firstItem < request.itemCount; firstItem += options.maxJobItems) {
    const count = Math.min(options.maxJobItems, request.itemCount - firstItem);
    parts.push(planPart(request, firstItem, count, options));
  }
  return parts;
}

function planPart(
  request: InferRequest,
  firstItem: number,
  count: number,
  options: PartOptions,
): PlannedPart {
  const { requestId, model } = request;
  const whole = count === request.itemCount;
  const inputs = whole ? request.inputs : request.inputs.map((t) => sliceTensor(t, firstItem, count));
  const pieces = framePieces({}, inputs);
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const inline = bytes <= MAX_INLINE_BYTES;
  const key = payloadKey(options.queue, requestId, firstItem);
  const data: Part = {
    requestId,
    firstItem,
    count,
    replyTo: options.replyTo,
    deadlineAt: request.deadlineAt,
    onDisconnect: request.durable ? 'keep' : 'cancel',
    ...(request.durable ? { keepUntil: request.durable.keepUntil } : {}),
    tenant: request.tenant,
    priority: PRIORITIES[request.priority],
    ...(request.operation === undefined ? {} : { operation: request.operation }),
    generation: 0,
    parameters: request.parameters,
    ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
    // What must not run yet waits for nothing until then.
    stamps: {
      received: request.stamps.received,
      enqueued: Math.max(options.now, request.durable?.notBefore ?? 0),
    },
    payload: inline ? { inline: Buffer.concat(pieces, bytes).toString('base64') } : { key, bytes },
  };
  return {
    firstItem,
    count,
    model,
    data,
    bytes,
    ...(inline ? {} : { sidePayload: { key, pieces } }),
  };
}
