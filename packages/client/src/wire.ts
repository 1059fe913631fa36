import { floatsOfBase64 } from './base64.js';
import { MillraceProtocolError } from './errors.js';
import type { HttpAnswer } from './transport.js';

const KEY_BYTES = 16;

/** A model's place in a path, with its version where one is asked for. */
export function modelPath(model: string, version?: string): string {
  const name = encodeURIComponent(model);
  return version === undefined ? name : `${name}/versions/${encodeURIComponent(version)}`;
}

/**
 * A new `Idempotency-Key`: 128 random bits. `crypto.randomUUID` is there only on pages that came over TLS or
 * from this machine.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @throws MillraceProtocolError when the body is not JSON. */
export function jsonOf<Answer>({ body, headers }: HttpAnswer): Answer {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as Answer;
  } catch (cause) {
    const type = headers.get('content-type') ?? 'of no type';
    throw new MillraceProtocolError(`The answer (${type}) is not JSON.`, { cause });
  }
}

interface EmbeddingList {
  data?: { index: number; embedding: unknown }[];
}

/**
 * The embeddings of an answer of `/v1/embeddings`, by their index.
 * @throws MillraceProtocolError when there are not `count`, or they are not in base64: some servers answer with
 * numbers whatever they are asked for.
 */
export function embeddingsOf({ data }: EmbeddingList, count: number): Float32Array[] {
  const embeddings: Float32Array[] = [];
  for (const { index, embedding } of data ?? []) {
    if (typeof embedding !== 'string') {
      throw new MillraceProtocolError('An embedding is not in base64, as it was asked for.');
    }
    embeddings[index] = floatsOfBase64(embedding);
  }
  if (embeddings.length !== count || embeddings.includes(undefined as never)) {
    throw new MillraceProtocolError(`The answer has ${data?.length ?? 0} embeddings, not ${count}.`);
  }
  return embeddings;
}
