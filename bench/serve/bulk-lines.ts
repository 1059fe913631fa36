import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { SAME_ANSWER } from '#test/support/load.js';
import { MINILM } from '#test/support/minilm.js';

/** Where its lines go: what who has embeddings to make in bulk uses. */
export const BULK_ENDPOINT = '/v1/embeddings';
/** So many lines' values are compared, spread over the file; of the others only their being there and their order. */
const MOST_COMPARED = 2000;

/** A file of `count` lines, a sentence each, in turn. */
export function bulkFile(sentences: readonly string[], count: number): Uint8Array<ArrayBuffer> {
  const lines = sentences.map((input) => `"body":${JSON.stringify({ model: MINILM, input })}}\n`);
  const parts: string[] = [];
  for (let i = 0; i < count; i++) parts.push(`{"custom_id":"${i}",${lines[i % lines.length]}`);
  return new TextEncoder().encode(parts.join(''));
}

export interface CheckedOutput {
  lines: number;
  bytes: number;
  compared: number;
  /** Not the line that should be there, or with another vector. */
  wrong: number;
}

/** Reads a batch's output as it comes: each line in its place, and the vectors of some. */
export async function checkOutput(
  response: Response,
  sentences: readonly string[],
  vectors: ReadonlyMap<string, readonly number[]>,
): Promise<CheckedOutput> {
  const checked: CheckedOutput = { lines: 0, bytes: 0, compared: 0, wrong: 0 };
  const { body } = response;
  if (!body) return checked;
  const input = Readable.fromWeb(body as ReadableStream);
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    const index = checked.lines++;
    checked.bytes += text.length + 1;
    const right = vectors.get(sentences[index % sentences.length] ?? '');
    if (!text.includes(`"custom_id":"${index}"`)) checked.wrong++;
    else if (right && checked.compared < MOST_COMPARED) {
      checked.compared++;
      if (!agrees(text, right)) checked.wrong++;
    }
  }
  return checked;
}

function agrees(line: string, right: readonly number[]): boolean {
  const { response } = JSON.parse(line) as { response: { body: { data: { embedding: number[] }[] } } };
  const vector = response.body.data[0]?.embedding ?? [];
  return (
    vector.length === right.length &&
    right.every((value, i) => Math.abs(value - (vector[i] ?? Number.NaN)) <= SAME_ANSWER)
  );
}
