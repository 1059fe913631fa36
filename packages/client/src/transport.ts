import { apiErrorOf } from './api-error.js';
import type { Clock } from './clock.js';
import { MillraceApiError, MillraceConnectionError, MillraceTimeoutError } from './errors.js';
import { backoffMs, mayRetry } from './retry.js';

export interface Call {
  method: 'GET' | 'POST';
  url: string;
  headers: Headers;
  body?: string | Uint8Array<ArrayBuffer> | undefined;
  /** Statuses beside 2xx that are answers too. */
  answers?: readonly number[] | undefined;
}

export interface StreamCall {
  url: string;
  headers: Headers;
  body: ReadableStream<Uint8Array>;
}

export interface CallLimits {
  timeoutMs: number;
  retries: number;
  signal?: AbortSignal | undefined;
}

export interface HttpAnswer {
  status: number;
  headers: Headers;
  body: ArrayBuffer;
}

/** Failures to connect, as Node.js names them; a browser doesn't say. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Sends calls: each until it is answered, fails for good, runs out of tries or time, or is given up. */
export class Transport {
  readonly #fetch: typeof globalThis.fetch;
  readonly #clock: Clock;

  constructor(fetch: typeof globalThis.fetch, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /**
   * @throws MillraceApiError, MillraceConnectionError, MillraceTimeoutError, or the signal's reason.
   */
  async send(call: Call, limits: CallLimits): Promise<HttpAnswer> {
    const { timeoutMs, retries, signal } = limits;
    signal?.throwIfAborted();
    const clock = this.#clock;
    const endsAt = clock.now() + timeoutMs;
    const ending = new AbortController();
    let failure: unknown;
    const stopTimer = clock.after(timeoutMs, () =>
      ending.abort(new MillraceTimeoutError(timeoutMs, failure)),
    );
    const giveUp = () => ending.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    const repeatable = call.method === 'GET' || call.headers.has('idempotency-key');
    try {
      for (let tries = 1; ; tries++) {
        try {
          return await this.#try(call, ending.signal);
        } catch (error) {
          ending.signal.throwIfAborted();
          failure = error;
          if (tries > retries || !mayRetry(error, repeatable)) throw error;
          const asked = error instanceof MillraceApiError ? error.retryAfterMs : undefined;
          const ms = backoffMs(tries, asked, clock.random());
          // Nothing would be left of the time: what is known now is worth more than a timeout later.
          if (clock.now() + ms >= endsAt) throw error;
          await this.#sleep(ms, ending.signal);
        }
      }
    } finally {
      stopTimer();
      signal?.removeEventListener('abort', giveUp);
    }
  }

  /**
   * Sends a body that goes on while its answer comes, once, and gives the answer's lines.
   * @throws as {@link send}, but for the timeout.
   */
  async *exchange(
    { url, headers, body }: StreamCall,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<string, void, undefined> {
    signal?.throwIfAborted();
    const ending = new AbortController();
    const giveUp = () => ending.abort(signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    let response: Response | undefined;
    try {
      const fetch = this.#fetch;
      // Not among the types of a browser's fetch: the answer is read while the body is sent.
      const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
      response = await fetch(url, { ...init, signal: ending.signal });
      if (!response.ok) throw apiErrorOf(response, await response.arrayBuffer(), this.#clock.epochMs());
      if (response.body) yield* linesOf(response.body);
    } catch (cause) {
      if (cause instanceof MillraceApiError) throw cause;
      ending.signal.throwIfAborted();
      throw connectionError(url, response !== undefined, cause);
    } finally {
      signal?.removeEventListener('abort', giveUp);
      // Whoever reads no more wants no more to be done.
      ending.abort();
    }
  }

  async #try(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    const { method, url, headers } = call;
    let response: Response | undefined;
    let body: ArrayBuffer;
    try {
      // Called as a function of its own: a browser's fetch refuses to be another object's method.
      const fetch = this.#fetch;
      response = await fetch(url, { method, headers, body: call.body ?? null, signal });
      body = await response.arrayBuffer();
    } catch (cause) {
      throw connectionError(url, response !== undefined, cause);
    }
    if (!response.ok && !call.answers?.includes(response.status)) {
      throw apiErrorOf(response, body, this.#clock.epochMs());
    }
    return { status: response.status, headers: response.headers, body };
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        stop();
        reject(signal.reason);
      };
      const stop = this.#clock.after(ms, () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      });
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + decoder.decode(read.value, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function connectionError(url: string, answered: boolean, cause: unknown): MillraceConnectionError {
  if (answered) return new MillraceConnectionError(`The answer of ${url} broke off.`, false, cause);
  // fetch says little itself; Node.js puts the reason into `cause`.
  const reason = (cause as { cause?: { code?: unknown; message?: unknown } } | undefined)?.cause;
  const code = typeof reason?.code === 'string' ? reason.code : undefined;
  const why = code ?? (cause instanceof Error ? cause.message : String(cause));
  const neverSent = code !== undefined && NEVER_CONNECTED.has(code);
  return new MillraceConnectionError(`No answer from ${url}: ${why}.`, neverSent, cause);
}
