export interface PredictAnswer {
  id: string;
  model: string;
  version: string;
  outputs: number[][];
  timings: Record<string, number>;
  truncated?: number[];
  errors?: { index: number; code: string; message: string }[];
}

/** POSTs JSON, or text as it is. */
export function post(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
    headers: { 'Content-Type': 'application/json', ...init.headers },
  });
}

/** The native door; throws with the body's text unless it answers 200. */
export async function predict(
  url: string,
  model: string,
  inputs: unknown,
  rest: object = {},
): Promise<PredictAnswer> {
  const response = await post(`${url}/v1/models/${model}/predict`, { inputs, ...rest });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as PredictAnswer;
}

/** Resolves when `condition` holds; the test's own time limit ends the wait. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}
