/** How a client is made. */
export interface MillraceClientOptions {
  /** Where the gateway is, as in `http://127.0.0.1:8080`; a path before its doors is kept. */
  baseUrl: string | URL;
  /** Sent as `Authorization: Bearer KEY`. Whoever may read a page may read the key in it. */
  apiKey?: string | undefined;
  /**
   * How long a call may take, in ms, with all its tries and the waiting between them; then it is given up with
   * a {@link MillraceTimeoutError}, and the server takes its work back. Default 60,000. From 1 to 2^31 - 1.
   */
  timeoutMs?: number | undefined;
  /** How many more times a call is tried that failed for a passing reason. Default 2; 0 never tries again. */
  retries?: number | undefined;
  /**
   * Whether calls that may be tried again carry an `Idempotency-Key` (a new UUID each), so that a call whose
   * answer got lost is not run twice. The server keeps each answer for a while (10 minutes by default): turn
   * it off where many small calls would fill its memory. Without a key, nothing is tried again that may have
   * run. Default true.
   */
  idempotencyKeys?: boolean | undefined;
  /** Used in place of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** What every call takes; what is left out is as the client was made. */
export interface CallOptions {
  /** Gives the call up: it rejects with the signal's reason, and the server takes its work back. */
  signal?: AbortSignal | undefined;
  /** As {@link MillraceClientOptions.timeoutMs}, for this call. */
  timeoutMs?: number | undefined;
  /** As {@link MillraceClientOptions.retries}, for this call. */
  retries?: number | undefined;
  /** Further headers, such as `traceparent`. */
  headers?: Record<string, string> | undefined;
}

/** What calls that run a model take. */
export interface RunOptions extends CallOptions {
  /**
   * How long the server waits for the answer, in ms, before it takes the work back and answers 504. Default:
   * the server's `waitMs`, 10,000 unless set; more than its `maxWaitMs` is cut to that.
   */
  waitMs?: number | undefined;
  /** Sent as `Idempotency-Key`: 1 to 255 printable ASCII characters. Default: see `idempotencyKeys`. */
  idempotencyKey?: string | undefined;
}

export interface PredictOptions<Partial extends boolean = boolean> extends RunOptions {
  /** The version of the model. Default: the latest that is served. */
  version?: string | undefined;
  /** Answer the other items if the model fails on some: `null` stands in their place. Default false. */
  partial?: Partial | undefined;
  /** Parameters of the model: a flat map. */
  parameters?: Parameters | undefined;
}

/** What a stream of predictions takes. It is sent once, and has no time limit of its own. */
export interface PredictStreamOptions<Partial extends boolean = boolean> {
  /** Whether answers come in the order of the inputs, or as they are done. Default `input`. */
  order?: 'input' | 'finished' | undefined;
  /** The version of the model. Default: the latest that is served. */
  version?: string | undefined;
  /** How long each may wait for its answer, in ms, from when the server has read it. */
  waitMs?: number | undefined;
  /** As {@link PredictOptions.partial}, for each. */
  partial?: Partial | undefined;
  /** Parameters of the model: a flat map. */
  parameters?: Parameters | undefined;
  /** Gives the stream up: it rejects with the signal's reason, and the server takes its work back. */
  signal?: AbortSignal | undefined;
  /** Further headers, such as `Millrace-Priority`. */
  headers?: Record<string, string> | undefined;
}

export interface EmbedOptions extends RunOptions {
  /** Numbers an embedding has, where the model can be cut to fewer than its own. */
  dimensions?: number | undefined;
}

export interface InferOptions extends RunOptions {
  /** The version of the model. Default: the latest that is served. */
  version?: string | undefined;
  /** Names of the outputs to answer with. Default: all. */
  outputs?: readonly string[] | undefined;
  /** An id of the caller's own, echoed in the answer. */
  id?: string | undefined;
  /** Parameters of the model or the protocol, such as `priority`: a flat map. */
  parameters?: Parameters | undefined;
}

export type Parameters = Record<string, string | number | boolean>;
