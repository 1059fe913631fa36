import { MINILM } from './minilm.js';

/** A line of a batch's output or error file. */
export interface AnsweredLine<Body = EmbeddingsBody> {
  id: string;
  custom_id: string | null;
  line: number;
  response: { status_code: number; request_id: string; body: Body } | null;
  error: { code: string; message: string } | null;
}

export interface EmbeddingsBody {
  data: { index: number; embedding: number[] }[];
  error?: { code: string; message: string };
}

/** A line that asks for the embedding of a text. */
export function embeddingLine(customId: string, text: string): string {
  return JSON.stringify({
    custom_id: customId,
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: MINILM, input: text, encoding_format: 'float' },
  });
}

/** Lines as a file holds them. */
export function fileOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

export function readLines<Body = EmbeddingsBody>(file: string): AnsweredLine<Body>[] {
  const lines = file.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as AnsweredLine<Body>);
}

/** The vector of a line that asked for one. */
export function vectorOf({ response }: AnsweredLine): number[] {
  return response?.body.data[0]?.embedding ?? [];
}
