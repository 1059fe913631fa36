/** The server answered with an error. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  /** As the server names it; empty where it does not. */
  readonly code: string;
  /** How long it asks to be left alone, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, status: number, code: string, retryAfterMs: number | undefined) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No answer came, or not all of it. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';

  constructor(url: string, cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    super(`No answer from ${url} (${code ?? message})`, { cause });
  }
}

/** Refused for now: the way stood still, there is too much at once, or something behind the door is away. */
const PASSING = new Set([408, 429, 502, 503, 504]);

/** Whether the same may go well later. */
export function mayPass(error: unknown): error is Refused | NoAnswer {
  return error instanceof NoAnswer || (error instanceof Refused && PASSING.has(error.status));
}
