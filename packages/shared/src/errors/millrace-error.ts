import { ERRORS, type ErrorCode, type ErrorSpec, isErrorCode } from './codes.js';

export interface ErrorDetails {
  /** The field of the request at fault, as the client would write it: `inputs[3]`. */
  field?: string;
  /** Index of the item at fault, counted in the whole request. */
  index?: number;
  /** Whole seconds after which trying again makes sense; becomes the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** The errors of single items, where a request failed because of several. */
  items?: ItemError[];
}

export interface ItemError {
  index: number;
  code: ErrorCode;
  message: string;
}

/** The plain-object form of a {@link MillraceError}: what crosses threads and processes. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  details?: ErrorDetails;
}

/**
 * The base class of every error that a client may see. Its message is public: it names the field and the
 * next step, and never holds a path, a secret or a client's input.
 */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message?: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message ?? ERRORS[code].text, options);
    this.code = code;
    this.details = details;
  }

  get spec(): ErrorSpec {
    return ERRORS[this.code];
  }

  toJSON(): SerializedError {
    return { code: this.code, message: this.message, details: this.details };
  }

  static from(value: SerializedError): MillraceError {
    return new MillraceError(isErrorCode(value.code) ? value.code : 'internal', value.message, value.details);
  }
}

/** A refusal to start: one plain sentence and the next step, printed without a stack, exit code 1. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
  readonly nextStep: string;

  constructor(sentence: string, nextStep: string, options?: ErrorOptions) {
    super(sentence, options);
    this.nextStep = nextStep;
  }
}
