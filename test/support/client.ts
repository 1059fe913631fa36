import { MillraceClient, type Prediction, type PredictOptions } from '@millrace/client';

/** POSTs JSON, or text as it is. */
export function post(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
    headers: { 'Content-Type': 'application/json', ...init.headers },
  });
}

export type PredictAnswer = Prediction<number[]>;

/** The native door, asked once; rejects with a MillraceApiError unless it answers 200. */
export async function predict(
  url: string,
  model: string,
  inputs: unknown,
  options: PredictOptions = {},
): Promise<PredictAnswer> {
  const client = new MillraceClient({ baseUrl: url, retries: 0 });
  return (await client.predict(model, inputs as string[], options)) as PredictAnswer;
}

/** Resolves when `condition` holds; the test's own time limit ends the wait. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}
