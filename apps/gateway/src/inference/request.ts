import type {
  Datatype,
  ItemOutcome,
  ModelDescription,
  Operation,
  PriorityClass,
  Stamps,
  Tensor,
} from '@millrace/shared';
import type { ClientGone } from './client-gone.js';

export type RequestParameters = Record<string, string | number | boolean>;

/** What one client asked, whichever door it came through. Doors translate into this and know no more. */
export interface InferRequest {
  /** Our own UUID; a client's id is only echoed by its door. */
  requestId: string;
  model: ModelDescription;
  /** Items on the first axis of every tensor. */
  inputs: Tensor[];
  itemCount: number;
  parameters: RequestParameters;
  /** How long HTTP waits, in ms from `stamps.received`. */
  waitMs: number;
  /** Epoch ms of Redis's clock after which the answer is worthless. */
  deadlineAt: number;
  /** Name of the API key, or "anonymous". */
  tenant: string;
  priority: PriorityClass;
  /** Absent: the model's own run. */
  operation?: Operation;
  /** Names an item as the client wrote it; absent: `inputs[INDEX]`. */
  fieldOf?: (index: number) => string;
  /** A request that outlives its client. */
  durable?: {
    /** When its results go, and before when it must not run, in epoch ms of Redis's clock. */
    keepUntil: number;
    notBefore?: number;
    /** Who is told of its end: a URL. */
    callback?: string;
  };
  /** Whether a failed item may stand beside answered ones; otherwise one failure fails the request. */
  partial: boolean;
  /** W3C trace context, passed on as it came. */
  traceparent?: string;
  stamps: { received: number };
  client: ClientGone;
}

/** One output of a request, cut into items; an item without an answer is undefined. */
export interface OutputColumn {
  name: string;
  datatype: Datatype;
  /** Shape of one item, without the first axis. */
  itemShape: number[];
  /** Row-major little-endian bytes by item; BYTES elements keep their length prefixes. */
  items: (Uint8Array | undefined)[];
}

export interface InferResult {
  requestId: string;
  model: ModelDescription;
  /** As in its request. */
  fieldOf?: InferRequest['fieldOf'];
  /** One outcome per item, in request order. */
  items: ItemOutcome[];
  outputs: OutputColumn[];
  /** Stamps of the part that was answered last. */
  stamps: Stamps;
  /** Ids of the workers that answered. */
  workers: string[];
  /** Indices of the items whose input was cut to the model's limit. */
  truncated: number[];
  /** Tokens of all items together, 0 for models without tokens. */
  tokens: number;
}
