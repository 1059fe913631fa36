import { type ApiErrorDetails, type ItemError, MillraceApiError } from './errors.js';
import { retryAfterMs } from './retry.js';

export type JsonObject = Record<string, unknown>;

/**
 * The error of an answer, from whichever door: problem details (RFC 9457) of the native one, `{error: {message,
 * code, param}}` of OpenAI's, `{error: "..."}` of the Open Inference Protocol's; or none of them, where a
 * proxy has answered.
 */
export function apiErrorOf(response: Response, body: ArrayBuffer, epochMs: number): MillraceApiError {
  const { status, headers } = response;
  const said = jsonObject(body);
  const { message, ...details } = said ? read(said) : ({} as Partial<Read>);
  return new MillraceApiError(
    message ?? `The server answered ${`${status} ${response.statusText}`.trim()}.`,
    {
      ...details,
      status,
      // The first is there where `X-Request-Id` echoes the caller's own.
      requestId: headers.get('x-millrace-request-id') ?? headers.get('x-request-id') ?? text(said?.requestId),
      retryAfterMs: retryAfterMs(headers, epochMs),
    },
  );
}

/** The error of one line of a stream: the problem details that it would have been answered with alone. */
export function errorOfProblem(said: JsonObject): MillraceApiError {
  const { message, ...details } = read(said);
  const status = typeof said.status === 'number' ? said.status : 0;
  const requestId = text(said.requestId);
  return new MillraceApiError(message ?? `The line was answered ${status}.`, {
    ...details,
    status,
    requestId,
  });
}

type Read = { message: string | undefined } & Omit<ApiErrorDetails, 'status'>;

function read(said: JsonObject): Read {
  const { error } = said;
  if (typeof error === 'string') return { message: error };
  if (isObject(error)) {
    return { message: text(error.message), code: text(error.code), field: text(error.param) };
  }
  return {
    message: text(said.detail) ?? text(said.title),
    code: text(said.code),
    field: text(said.field),
    index: typeof said.index === 'number' ? said.index : undefined,
    items: Array.isArray(said.errors) ? (said.errors as ItemError[]) : undefined,
  };
}

function jsonObject(body: ArrayBuffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
