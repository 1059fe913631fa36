import { type Agent, request } from 'node:http';

/** Posts JSON and resolves with the status and the parsed body; rejects where the connection is refused or breaks. */
export function postJson(
  url: string,
  body: unknown,
  headers: Record<string, string>,
  agent: Agent,
  signal: AbortSignal,
): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', agent, signal, headers: { 'Content-Type': 'application/json', ...headers } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          text += piece;
        });
        response.on('error', reject);
        response.on('end', () => {
          try {
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
          } catch {
            reject(new Error(`${response.statusCode} with a body that is not JSON: ${text.slice(0, 100)}`));
          }
        });
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}
