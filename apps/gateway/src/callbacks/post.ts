import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { guardedLookup, type TargetLimits } from './target.js';

/**
 * Posts a callback once. Redirects are not followed, answers not read.
 * @returns the status of the answer.
 * @throws Error when no answer came within `timeoutMs`.
 */
export function postOnce(
  url: string,
  headers: Record<string, string>,
  body: string,
  options: TargetLimits & { timeoutMs: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = send(
      url,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(body)),
          'user-agent': 'Millrace',
          ...headers,
        },
        lookup: guardedLookup(options),
        // Each delivery is asked anew where its name leads.
        agent: false,
        signal: AbortSignal.timeout(options.timeoutMs),
      },
      (response) => {
        resolve(response.statusCode ?? 0);
        response.destroy();
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
