import { createHash, randomBytes } from 'node:crypto';
import { MillraceError } from '@millrace/shared';
import type { FileRecord } from './file-record.js';
import type { FileRecords } from './file-records.js';
import type { FileStore } from './store.js';

const MIB = 1024 * 1024;
/** At most so many bytes are counted ahead of those that have come, and no more than have. */
const AHEAD_BYTES = 64 * MIB;

/** A file whose bytes are stored, before anything is said of it. */
export interface ReceivedFile {
  id: string;
  owner: string;
  bytes: number;
  sha256: string;
  /** None where a file of this id was there already: then its bytes were only read. */
  segments: FileRecord['segments'];
  existing: FileRecord | undefined;
  /** Under which it counts until it is kept. */
  receiving: string;
}

export interface ReceiveParts {
  records: FileRecords;
  store: FileStore;
  maxFileBytes: number;
}

/** What came so far of a file: counted, hashed, and refused where it is too large. */
class Arriving {
  bytes = 0;
  readonly #hash = createHash('sha256');
  readonly #content: AsyncIterable<Uint8Array>;
  readonly #maxBytes: number;
  readonly #reserve: ((bytes: number) => Promise<number>) | undefined;
  #reserved = 0;

  /** @param reserve has bytes counted against the owner's limits; absent where nothing is stored. */
  constructor(
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
    reserve: ((bytes: number) => Promise<number>) | undefined,
  ) {
    this.#content = content;
    this.#maxBytes = maxBytes;
    this.#reserve = reserve;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#content) {
      this.bytes += chunk.byteLength;
      if (this.bytes > this.#maxBytes) {
        throw new MillraceError('body_too_large', `The file is larger than ${this.#maxBytes} bytes.`, {
          field: 'file',
        });
      }
      if (this.#reserve && this.bytes > this.#reserved) this.#reserved = await this.#reserve(this.bytes);
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  digest(): string {
    return this.#hash.digest('hex');
  }
}

/**
 * Stores the bytes of a new file under a key of its own, so that two who send one at the same time do not meet.
 * @throws MillraceError `body_too_large`, `file_limit`, `storage_full`, `storage_unavailable`, and what `content` throws:
 * then nothing is left behind.
 */
export async function receive(
  { records, store, maxFileBytes }: ReceiveParts,
  { id, owner, key, existing }: { id: string; owner: string; key: string; existing: FileRecord | undefined },
  content: AsyncIterable<Uint8Array>,
): Promise<ReceivedFile> {
  const receiving = `receiving-${randomBytes(16).toString('hex')}`;
  if (existing) {
    const arriving = new Arriving(content, maxFileBytes, undefined);
    for await (const _ of arriving);
    const { bytes } = arriving;
    return { id, owner, bytes, sha256: arriving.digest(), segments: [], existing, receiving };
  }
  const arriving = new Arriving(content, maxFileBytes, (bytes) =>
    records.reserve(owner, receiving, bytes, Math.min(bytes + Math.min(bytes, AHEAD_BYTES), maxFileBytes)),
  );
  try {
    // Also where nothing comes: a file without bytes counts as one.
    await records.reserve(owner, receiving, 0, 0);
    const bytes = await store.put(key, arriving);
    await records.reserve(owner, receiving, bytes, bytes);
    const segments = [{ key, bytes }];
    return { id, owner, bytes, sha256: arriving.digest(), segments, existing, receiving };
  } catch (error) {
    // Put may have ended well, and Redis gone after it.
    await store.remove([key]).catch(() => undefined);
    await records.release(owner, receiving).catch(() => undefined);
    throw error;
  }
}
