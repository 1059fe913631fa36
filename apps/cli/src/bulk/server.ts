import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Refused } from './faults.js';
import { formOf, type UploadedFile } from './form.js';
import type { Http } from './http.js';

/** A batch as the server tells of it, as far as it is read here. */
export interface Batch {
  id: string;
  status: string;
  completion_window: string;
  /** Why it failed, or what holds it up. */
  errors: { data: { code: string; message: string }[] } | null;
  input_file_id: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
}

export interface BatchAsked {
  input_file_id: string;
  endpoint: string;
  completion_window: string;
}

export type Turn = 'cancel' | 'pause' | 'resume';

/** A server may take so long to put a large file on its disk, in ms. */
const STORING_MS = 300_000;
const JSON_HEADERS = { 'content-type': 'application/json' };

/** What is asked of a server for a batch. Each call throws as `Http.json` does. */
export class BulkServer {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  get url(): string {
    return this.#http.url;
  }

  /** Asks for nothing but an answer: whether it is there, has batches, and takes the key. */
  async reach(): Promise<void> {
    await this.#http.json({ method: 'GET', path: '/v1/batches?limit=1' });
  }

  /**
   * @param key the same file again under the same key is the same file.
   * @param onBytes hears how many bytes of it were handed over.
   * @returns its id.
   */
  async upload(file: UploadedFile, key: string, onBytes: (bytes: number) => void): Promise<string> {
    const { type, length, parts } = formOf(file, onBytes);
    const headers = {
      'content-type': type,
      'content-length': String(length),
      'idempotency-key': key,
    };
    const body = Readable.from(parts, { objectMode: false });
    const call = { method: 'POST', path: '/v1/files', headers, body, idleMs: STORING_MS } as const;
    return (await this.#http.json<{ id: string }>(call)).id;
  }

  /**
   * @param key the same batch again under the same key is the same batch.
   * @param signal ends it, in place of the one that ends all else.
   */
  async create(asked: BatchAsked, key: string, signal: AbortSignal): Promise<Batch> {
    const headers = { ...JSON_HEADERS, 'idempotency-key': key };
    const body = JSON.stringify(asked);
    return await this.#http.json({ method: 'POST', path: '/v1/batches', headers, body, signal });
  }

  async batch(id: string): Promise<Batch> {
    return await this.#http.json({ method: 'GET', path: batchPath(id) });
  }

  async turn(id: string, turn: Turn): Promise<Batch> {
    return await this.#http.json({ method: 'POST', path: `${batchPath(id)}/${turn}`, headers: JSON_HEADERS });
  }

  /** How many bytes a file has. */
  async bytesOf(fileId: string): Promise<number> {
    return (await this.#http.json<{ bytes: number }>({ method: 'GET', path: filePath(fileId) })).bytes;
  }

  /** The bytes of a file from an offset on. */
  async content(fileId: string, from: number): Promise<IncomingMessage> {
    const headers: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
    return await this.#http.open({ method: 'GET', path: `${filePath(fileId)}/content`, headers });
  }

  /** One that is gone already is no error. */
  async remove(fileId: string): Promise<void> {
    try {
      await this.#http.json({ method: 'DELETE', path: filePath(fileId) });
    } catch (error) {
      if (!(error instanceof Refused && error.code === 'file_not_found')) throw error;
    }
  }
}

function batchPath(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}

function filePath(id: string): string {
  return `/v1/files/${encodeURIComponent(id)}`;
}
