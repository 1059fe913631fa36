import { Agent, request } from 'node:http';

export interface TensorAnswer {
  status: number;
  /** Byte length of the JSON in front of binary tensors; 0 where the answer is JSON alone. */
  jsonLength: number;
  body: Buffer;
}

/** Sends one tensor body after another over connections that are kept. */
export class TensorClient {
  readonly #agent = new Agent({ keepAlive: true });

  constructor(private readonly url: string) {}

  /** @param jsonLength of a binary body; absent: the body is JSON alone. */
  infer(body: Buffer, jsonLength?: number): Promise<TensorAnswer> {
    const binary = jsonLength !== undefined;
    const headers = {
      'Content-Type': binary ? 'application/octet-stream' : 'application/json',
      'Content-Length': body.byteLength,
      ...(binary ? { 'Inference-Header-Content-Length': jsonLength } : {}),
    };
    return new Promise((resolve, reject) => {
      const sent = request(this.url, { method: 'POST', agent: this.#agent, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            jsonLength: Number(answer.headers['inference-header-content-length'] ?? 0),
            body: Buffer.concat(chunks),
          }),
        );
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
