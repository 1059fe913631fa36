import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 200;
const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled']);

/** A batch as it is answered. */
export interface BatchBody {
  id: string;
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
}

/** Uploads lines as a file for a batch. @returns its id. @throws Error with what it was answered. */
export async function uploadLines(url: string, lines: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([lines]), 'lines.jsonl');
  const { id } = await json<{ id: string }>(await fetch(`${url}/v1/files`, { method: 'POST', body: form }));
  return id;
}

/** @throws Error with what it was answered. */
export async function createBatch(url: string, fileId: string, endpoint: string): Promise<BatchBody> {
  const body = { input_file_id: fileId, endpoint, completion_window: '24h' };
  const headers = { 'Content-Type': 'application/json' };
  return await json(
    await fetch(`${url}/v1/batches`, { method: 'POST', headers, body: JSON.stringify(body) }),
  );
}

/** @throws Error with what it was answered. */
export async function readBatch(url: string, id: string): Promise<BatchBody> {
  return await json(await fetch(`${url}/v1/batches/${id}`));
}

/** @throws Error with what it was answered. */
export async function cancelBatch(url: string, id: string): Promise<BatchBody> {
  return await json(await fetch(`${url}/v1/batches/${id}/cancel`, { method: 'POST' }));
}

export async function untilBatchEnded(url: string, id: string): Promise<BatchBody> {
  for (;;) {
    const batch = await readBatch(url, id);
    if (ENDED.has(batch.status)) return batch;
    await sleep(POLL_MS);
  }
}

/** The content of a file; empty where a batch has none. @throws Error with what it was answered. */
export async function readFileOf(url: string, fileId: string | null): Promise<Response> {
  if (fileId === null) return new Response('');
  const response = await fetch(`${url}/v1/files/${fileId}/content`);
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

async function json<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
}
