import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { ERRORS, MillraceError } from '@millrace/shared';
import type { DoorErrors, RequestContext } from '../../http/context.js';

/** In HTTP that is a header of every answer. */
const DEFAULT_RETRY_SECONDS = 1;

/** Longest message in characters once encoded; clients take 8 KiB of metadata. */
const MOST_ENCODED = 4096;
/** So many characters stay within it whatever they are: at most nine each. */
const SHORT_TEXT = 440;

/** The gRPC status of an error by the HTTP status that the table of codes gives it. */
const STATUS_OF: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  405: status.UNIMPLEMENTED,
  408: status.DEADLINE_EXCEEDED,
  409: status.ABORTED,
  410: status.NOT_FOUND,
  413: status.RESOURCE_EXHAUSTED,
  415: status.UNIMPLEMENTED,
  416: status.OUT_OF_RANGE,
  422: status.INVALID_ARGUMENT,
  429: status.RESOURCE_EXHAUSTED,
  431: status.RESOURCE_EXHAUSTED,
  499: status.CANCELLED,
  500: status.INTERNAL,
  501: status.UNIMPLEMENTED,
  503: status.UNAVAILABLE,
  504: status.DEADLINE_EXCEEDED,
  507: status.RESOURCE_EXHAUSTED,
};

/** Texts of the table that speak of HTTP, in words of this door. */
const TEXTS: Partial<Record<keyof typeof ERRORS, string>> = {
  unauthorized: 'An API key is required: send the metadata "authorization: Bearer KEY".',
  deadline_exceeded:
    'The answer did not come within the time the call allowed. Give the call a later deadline or the request a longer "timeout", or send less at once.',
};

/** Errors are a status and a sentence; it begins with the field at fault. */
export const grpcErrors: DoorErrors = {
  name: 'grpc',
  contentType: 'application/grpc',
  render: (error: MillraceError) => ({ error: messageOf(error) }),
};

function statusOf(error: MillraceError): status {
  return STATUS_OF[error.spec.status] ?? status.INTERNAL;
}

export function messageOf(error: MillraceError): string {
  const own = TEXTS[error.code];
  return own !== undefined && error.message === ERRORS[error.code].text ? own : error.message;
}

/** What fits into a header: one that is too large costs the client the whole answer. */
function headerText(message: string): string {
  // A name that was cut within a character leaves half of it, which can't be encoded.
  const text = message.isWellFormed() ? message : Buffer.from(message).toString();
  if (encodeURI(text).length <= MOST_ENCODED) return text;
  return `${Buffer.from(text.slice(0, SHORT_TEXT)).toString()}…`;
}

/** The end of a call: its status, and in the trailing metadata its ids and, of what may pass, when to try again. */
export function endOf({ idHeaders }: RequestContext, error?: MillraceError): StatusObject {
  const metadata = new Metadata();
  for (let i = 0; i < idHeaders.length; i += 2) metadata.set(idHeaders[i] ?? '', idHeaders[i + 1] ?? '');
  if (!error) return { code: status.OK, details: '', metadata };
  const { status: http } = error.spec;
  if (http === 429 || http === 503) {
    metadata.set('retry-after', String(error.details.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS));
  }
  return { code: statusOf(error), details: headerText(messageOf(error)), metadata };
}

/** An end that the library gave a call by itself, as one of our errors. */
export function errorOfLibrary(
  { code, details = '' }: { code?: status; details?: string },
  maxBytes: number,
): MillraceError {
  switch (code) {
    case status.RESOURCE_EXHAUSTED:
      return new MillraceError('body_too_large', `The message is larger than ${maxBytes} bytes.`, {
        field: 'message',
      });
    case status.DEADLINE_EXCEEDED:
      return new MillraceError('deadline_exceeded');
    case status.UNIMPLEMENTED:
      return new MillraceError(
        'unsupported_media_type',
        'The header grpc-encoding must be identity, gzip or deflate.',
        { field: 'grpc-encoding' },
      );
    default:
      if (details.startsWith('Failed to decompress')) {
        return new MillraceError('invalid_input', "The message can't be decompressed.", { field: 'message' });
      }
      if (details.startsWith('Invalid grpc-timeout')) {
        return new MillraceError('invalid_input', 'The header grpc-timeout is not valid.', {
          field: 'grpc-timeout',
        });
      }
      return new MillraceError('internal', undefined, {}, { cause: new Error(details) });
  }
}

/** Errors of calls that operators make: their polling stays out of the door's numbers. */
export const operationsErrors: DoorErrors = { ...grpcErrors, name: 'operations' };
