import { ERRORS, isErrorCode } from '@millrace/shared';
import type { Answer } from './answers.js';
import type { Door } from './requests.js';

/** A server's own fault is never an answer; these say that it can't now, or not at all. */
const ALLOWED_5XX = new Set([501, 503, 504]);
const LEAK = /node_modules|\bat [^ ]+ \(|\.js:\d+|Error: /;
const JSON_TYPES = /^application\/(problem\+)?json(; charset=utf-8)?$/;

/** What is wrong with one answer; undefined where it is as it should be. */
export function faultOf(answer: Answer, door: Door, method: string | undefined): string | undefined {
  const { status, headers, body } = answer;
  const text = body.toString('utf8');
  if (status >= 500 && !ALLOWED_5XX.has(status)) return `status ${status}: ${text.slice(0, 300)}`;
  if (LEAK.test(text)) return `it tells of the inside: ${text.slice(0, 300)}`;
  if (method === 'HEAD') return undefined;
  const type = headers.get('content-type') ?? '';
  if (status < 300) return faultOfValue(type, text);
  if (status < 400) {
    const location = headers.get('location');
    // Who looks at the root with a browser is shown what there is.
    const allowed = location === './docs' ? 'tei' : location?.startsWith('/dashboard') ? 'page' : undefined;
    return allowed && (door === allowed || door === 'any') ? undefined : `a redirect to ${location}`;
  }
  return faultOfError(answer, type, text, door);
}

function faultOfValue(type: string, text: string): string | undefined {
  if (!JSON_TYPES.test(type)) return undefined;
  const value = parsed(text);
  return typeof value === 'object' && value !== null ? undefined : `no JSON: ${text.slice(0, 200)}`;
}

/** Every error has a shape that its door promises, and a code of the one table. */
function faultOfError(
  { status, headers }: Answer,
  type: string,
  text: string,
  door: Door,
): string | undefined {
  const said = `${status} ${type}: ${text.slice(0, 200)}`;
  if (type.startsWith('text/html')) {
    return door === 'page' || door === 'any' ? undefined : `a page for an error: ${said}`;
  }
  if (!JSON_TYPES.test(type)) return `an error in no known shape: ${said}`;
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) return `an error that is no object: ${said}`;
  const { code, requestId, error, error_type: teiType, ready } = value as Record<string, unknown>;
  // Readiness that fails is no error of the request's.
  if (status === 503 && ready === false) return undefined;
  if (code !== undefined) {
    if (door === 'open' || door === 'openai' || door === 'tei')
      return `an error in another door's shape: ${said}`;
    if (!isErrorCode(code) || ERRORS[code].status !== status) return `an error code unknown for it: ${said}`;
    // Its own id, where the client's stands under the usual name.
    const id = headers.get('x-millrace-request-id') ?? headers.get('x-request-id');
    return id === undefined || id === requestId ? undefined : `another request's id: ${said}`;
  }
  if (typeof error === 'object' && error !== null) {
    if (door !== 'openai' && door !== 'any') return `an error in another door's shape: ${said}`;
    const { message, type: kind, param, code: its } = error as Record<string, unknown>;
    const whole =
      typeof message === 'string' && message !== '' && typeof kind === 'string' && param !== undefined;
    if (!whole) return `an error in no known shape: ${said}`;
    return isErrorCode(its) && ERRORS[its].status === status
      ? undefined
      : `an error code unknown for it: ${said}`;
  }
  const itsDoor = typeof teiType === 'string' ? 'tei' : 'open';
  if (typeof error !== 'string' || error === '' || !(door === itsDoor || door === 'any')) {
    return `an error in no known shape: ${said}`;
  }
  const known = Object.values(ERRORS).some((spec) => spec.status === status);
  return known ? undefined : `a status that no error has: ${said}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
