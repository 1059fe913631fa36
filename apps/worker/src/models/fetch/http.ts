import { SourceFailure } from './types.js';

const MAX_REDIRECTS = 8;
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The connection broke after it had been made: worth another try. */
export class ConnectionCut extends Error {
  override readonly name = 'ConnectionCut';
}

export interface OpenOptions {
  headers: Record<string, string>;
  /** Sent to the first address's origin only: never to the host a redirect names. */
  token?: string | undefined;
  firstByteMs: number;
  idleMs: number;
  signal: AbortSignal;
  /** Sees every answer of the chain, redirects included; may throw. */
  onAnswer: (answer: Response) => void;
}

export interface Opened {
  answer: Response;
  /** The body's pieces; throws ConnectionCut when it breaks or stalls. */
  body: AsyncIterable<Uint8Array>;
  /** Drops the connection; a body that was read to its end needs it as well. */
  close: () => void;
}

/**
 * GETs an address, following redirects.
 * @throws SourceFailure (unreachable) when nobody answers in time; ConnectionCut when the connection broke;
 * the signal's reason.
 */
export async function openFollowing(address: URL, options: OpenOptions): Promise<Opened> {
  let url = address;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const authorization =
      options.token !== undefined && url.origin === address.origin
        ? { authorization: `Bearer ${options.token}` }
        : undefined;
    const dropped = new AbortController();
    const answer = await ask(url, { ...options.headers, ...authorization }, dropped, options);
    try {
      options.onAnswer(answer);
    } catch (error) {
      dropped.abort();
      throw error;
    }
    const location = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : null;
    if (location === null) {
      return { answer, body: pieces(answer, dropped, options), close: () => dropped.abort() };
    }
    dropped.abort();
    url = redirected(location, url);
  }
  throw new SourceFailure(`it redirected more than ${MAX_REDIRECTS} times`);
}

async function ask(
  url: URL,
  headers: Record<string, string>,
  dropped: AbortController,
  { firstByteMs, signal }: OpenOptions,
): Promise<Response> {
  const timer = setTimeout(() => dropped.abort(), firstByteMs);
  try {
    return await fetch(url, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.any([signal, dropped.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (dropped.signal.aborted) {
      throw new SourceFailure(`${url.host} did not answer within ${firstByteMs / 1000} s`, {
        unreachable: true,
      });
    }
    const code = codeOf(error);
    if (UNREACHABLE.has(code) || code.includes('CERT') || code.includes('TLS')) {
      throw new SourceFailure(`${url.host} can't be reached (${code})`, { unreachable: true, cause: error });
    }
    throw new ConnectionCut(`the connection to ${url.host} broke (${code})`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function* pieces(
  answer: Response,
  dropped: AbortController,
  { idleMs, signal }: OpenOptions,
): AsyncGenerator<Uint8Array> {
  if (answer.body === null) return;
  let stalled = false;
  const stall = () => {
    stalled = true;
    dropped.abort();
  };
  let timer = setTimeout(stall, idleMs);
  try {
    for await (const piece of answer.body) {
      clearTimeout(timer);
      yield piece;
      timer = setTimeout(stall, idleMs);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (stalled) throw new ConnectionCut(`nothing came for ${idleMs / 1000} s`);
    throw new ConnectionCut(`the connection broke (${codeOf(error)})`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function redirected(location: string, from: URL): URL {
  const to = parseUrl(location, from);
  if (to === undefined || (to.protocol !== 'https:' && to.protocol !== 'http:')) {
    throw new SourceFailure(`${from.host} redirected to something that is not a web address`);
  }
  return to;
}

/** An absolute address, or undefined. */
export function parseUrl(text: string, base?: URL): URL | undefined {
  return URL.canParse(text, base?.href) ? new URL(text, base?.href) : undefined;
}

/** The most telling code of a failed fetch, which hides it in a chain of causes. */
function codeOf(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const nested = at instanceof AggregateError ? at.errors[0] : at;
    const code = (nested as NodeJS.ErrnoException).code;
    if (typeof code === 'string') return code;
  }
  return error instanceof Error ? error.message : String(error);
}
