/** An item that failed, by its index in the request. */
export interface ItemError {
  index: number;
  code: string;
  message: string;
}

export interface ApiErrorDetails {
  status: number;
  code?: string | undefined;
  field?: string | undefined;
  index?: number | undefined;
  items?: readonly ItemError[] | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
}

/** The server answered with an error. The message is its own sentence. */
export class MillraceApiError extends Error {
  override readonly name = 'MillraceApiError';
  /** The HTTP status. */
  readonly status: number;
  /** The server's code, such as `invalid_input` or `queue_full`; the Open Inference Protocol has none. */
  readonly code: string | undefined;
  /** The field at fault, such as `inputs[3]`. */
  readonly field: string | undefined;
  /** The first item at fault, where it is one of a list. */
  readonly index: number | undefined;
  /** Every item at fault, where the model failed on some. */
  readonly items: readonly ItemError[];
  /** The server's id of the request, by which its log and its operators know it. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before another try, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ApiErrorDetails) {
    super(message);
    this.status = details.status;
    this.code = details.code;
    this.field = details.field;
    this.index = details.index;
    this.items = details.items ?? [];
    this.requestId = details.requestId;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** No answer came, or not all of it: the server can't be reached, or the connection broke. See `cause`. */
export class MillraceConnectionError extends Error {
  override readonly name = 'MillraceConnectionError';
  /** Whether the request surely never reached the server; false where that can't be known. */
  readonly neverSent: boolean;

  constructor(message: string, neverSent: boolean, cause: unknown) {
    super(message, { cause });
    this.neverSent = neverSent;
  }
}

/** The call took longer than its `timeoutMs`; `cause` is the failure of the last try that ended, if one did. */
export class MillraceTimeoutError extends Error {
  override readonly name = 'MillraceTimeoutError';
  readonly timeoutMs: number;

  constructor(timeoutMs: number, cause?: unknown) {
    super(`No answer within ${timeoutMs} ms.`, { cause });
    this.timeoutMs = timeoutMs;
  }
}

/** The answer is not what its protocol says: something else than Millrace, or a proxy, has answered. */
export class MillraceProtocolError extends Error {
  override readonly name = 'MillraceProtocolError';
}
