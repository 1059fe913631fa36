import type { Readable } from 'node:stream';

/** An object as it is listed. `modifiedAt`: epoch ms of the storage's own clock. */
export interface StoredObject {
  key: string;
  bytes: number;
  modifiedAt: number;
}

/** Where the bytes of files lie. Objects are written whole and never changed. Keys are relative: `[a-zA-Z0-9._/-]+`. */
export interface FileStore {
  /**
   * Writes an object; nothing of it is seen before all of it is there (and on disk). What `content` throws leaves nothing
   * behind and is thrown on.
   * @returns its bytes.
   * @throws MillraceError `storage_full` when there is no room, `storage_unavailable` when it can't be reached.
   */
  put(key: string, content: AsyncIterable<Uint8Array>): Promise<number>;
  /**
   * Bytes [start, end) of an object; to its end where `end` is absent or beyond it.
   * @throws MillraceError `file_not_found`, `storage_unavailable`.
   */
  read(key: string, start?: number, end?: number): Promise<Readable>;
  /** What is not there is no error. @throws MillraceError `storage_unavailable`. */
  remove(keys: readonly string[]): Promise<void>;
  /** Objects whose key begins with `prefix`. @throws MillraceError `storage_unavailable`. */
  list(prefix: string): AsyncIterable<StoredObject>;
  close(): Promise<void>;
}

const KEY = /^[a-zA-Z0-9_-][a-zA-Z0-9._-]*(\/[a-zA-Z0-9_-][a-zA-Z0-9._-]*)*$/;

/** A key that leads nowhere else, in any storage: no step of it is empty or begins with a dot. */
export function requireKey(key: string): void {
  if (!KEY.test(key)) throw new Error(`not a key of an object: ${JSON.stringify(key)}`);
}

/** Content on its way into a storage: what it threw itself is told from what the storage did. */
export class Incoming {
  bytes = 0;
  /** What the content ended with, where that was an error. */
  fault: { error: unknown } | undefined;
  readonly #content: AsyncIterable<Uint8Array>;

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#content = content;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    // What is thrown while a chunk is out comes from who takes it.
    let isOut = false;
    try {
      for await (const chunk of this.#content) {
        this.bytes += chunk.byteLength;
        isOut = true;
        yield chunk;
        isOut = false;
      }
    } catch (error) {
      if (!isOut) this.fault = { error };
      throw error;
    }
  }
}
