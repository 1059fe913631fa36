import { type IncomingHttpHeaders, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overTls } from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { NoAnswer, Refused } from './faults.js';

/** A connection on which nothing moves for so long is given up, in ms. */
const IDLE_MS = 60_000;

export interface Call {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  /** A stream is read as fast as the server takes it. */
  body?: string | Readable;
  /** Ends it, in place of the one that ends all other calls. */
  signal?: AbortSignal;
  /** How long nothing may move, in ms, where the server has more to do than to answer. */
  idleMs?: number;
}

/** Calls to one server. */
export class Http {
  readonly url: string;
  readonly #headers: Record<string, string>;
  readonly #signal: AbortSignal;

  constructor(url: string, apiKey: string | undefined, signal: AbortSignal) {
    this.url = url;
    // Coded, bytes would have other offsets.
    this.#headers = { 'accept-encoding': 'identity' };
    if (apiKey !== undefined) this.#headers.authorization = `Bearer ${apiKey}`;
    this.#signal = signal;
  }

  /** @throws Refused, NoAnswer, what a streamed body failed with, or the signal's reason. */
  async json<Answer>(call: Call): Promise<Answer> {
    const answer = await this.open(call);
    const body = await this.#textOf(answer, call);
    try {
      return JSON.parse(body) as Answer;
    } catch {
      throw new Refused(
        `${this.url} does not answer as Millrace does.`,
        answer.statusCode ?? 0,
        '',
        undefined,
      );
    }
  }

  /** An answer whose body is still to be read. @throws as {@link json}. */
  async open(call: Call): Promise<IncomingMessage> {
    const answer = await this.#send(call);
    const { statusCode: status = 0, headers } = answer;
    if (status >= 200 && status < 300) return answer;
    const body = await this.#textOf(answer, call);
    // It was refused before all of it was sent: what is left is not worth sending.
    if (typeof call.body === 'object') call.body.destroy();
    throw refusedBy(status, headers, body);
  }

  #send(call: Call): Promise<IncomingMessage> {
    const { method, path, headers, body, signal = this.#signal, idleMs = IDLE_MS } = call;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      let fault: Error | undefined;
      const send = this.url.startsWith('https:') ? overTls : overHttp;
      const request = send(`${this.url}${path}`, {
        method,
        headers: { ...this.#headers, ...headers },
        signal,
        timeout: idleMs,
      });
      request.on('timeout', () => request.destroy(new Error(`nothing was heard for ${idleMs / 1000} s`)));
      request.on('response', resolve);
      request.on('error', (error) => {
        reject(signal.aborted ? signal.reason : (fault ?? new NoAnswer(this.url, error)));
      });
      if (typeof body === 'object') {
        body.on('error', (error) => {
          fault = error;
        });
        pipeline(body, request, () => undefined);
      } else {
        request.end(body);
      }
    });
  }

  async #textOf(answer: IncomingMessage, { signal = this.#signal }: Call): Promise<string> {
    try {
      return await text(answer);
    } catch (error) {
      signal.throwIfAborted();
      throw new NoAnswer(this.url, error);
    }
  }
}

function refusedBy(status: number, headers: IncomingHttpHeaders, body: string): Refused {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const retryAfterMs = Number.isNaN(seconds) ? undefined : seconds * 1000;
  let said: { message?: unknown; code?: unknown } | undefined;
  try {
    said = (JSON.parse(body) as { error?: typeof said }).error;
  } catch {
    // Somebody else's answer, such as a proxy's.
  }
  const message =
    typeof said?.message === 'string' ? said.message : `The server answers with status ${status}.`;
  return new Refused(message, status, typeof said?.code === 'string' ? said.code : '', retryAfterMs);
}
