import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface Sent {
  method: 'GET' | 'POST' | 'DELETE';
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface Received {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Sends a request and resolves with its whole answer; rejects where the connection is refused or breaks. */
export function send(url: string, sent: Sent, agent: Agent, signal: AbortSignal): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { method, headers = {}, body } = sent;
    const sending = request(url, { method, agent, signal, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        });
      });
    });
    sending.on('error', reject);
    sending.end(body);
  });
}

export const JSON_HEADERS = { 'Content-Type': 'application/json' };

/** @throws Error for a body that is no JSON. */
export function jsonOf({ status, body }: Received): unknown {
  const text = body.toString();
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${status} with a body that is not JSON: ${text.slice(0, 100)}`);
  }
}

/** The code of an error in the shape of any door. */
export function codeOf(body: unknown): string {
  const { code, error } = (body ?? {}) as { code?: string; error?: { code?: string } };
  return code ?? error?.code ?? '';
}
