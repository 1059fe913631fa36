import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Logger, MillraceError, type RedisClock, type Settings } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { HostGates } from '../callbacks/host-gates.js';
import { type FilePurpose, type FileRecord, namedFileId, newFileId } from './file-record.js';
import { FileRecords, type ListedFiles } from './file-records.js';
import { openFile } from './open-file.js';
import { openFileStore, type StoreSettings, uploadsAtOnce } from './open-store.js';
import { type ReceivedFile, receive } from './receive.js';
import type { FileStore } from './store.js';
import { FileSweeper } from './sweeper.js';

/** What is said of a file beside its bytes. */
export interface FileDetails {
  filename: string;
  purpose: FilePurpose;
  /** Epoch ms of Redis's clock; at most so long as files are kept here. */
  expiresAt?: number | undefined;
}

export interface FilesParts {
  redis: Redis;
  clock: RedisClock;
  settings: StoreSettings & Pick<Settings, 'maxFileBytesPerKey' | 'maxFilesPerKey' | 'fileKeepMs'>;
  logger: Logger;
}

/** The files of all API keys: their records in Redis, their bytes in the storage. */
export class Files {
  readonly store: FileStore;
  readonly #records: FileRecords;
  readonly #parts: FilesParts;
  readonly #sweeper: FileSweeper;
  readonly #uploads: HostGates;

  constructor(parts: FilesParts) {
    const { redis, clock, settings, logger } = parts;
    this.#parts = parts;
    this.store = openFileStore(settings);
    this.#uploads = new HostGates(uploadsAtOnce(settings));
    this.#records = new FileRecords({ redis, clock, limits: settings });
    this.#sweeper = new FileSweeper({ redis, records: this.#records, store: this.store, logger });
  }

  /** Sweeps from now on. */
  start(): void {
    this.#sweeper.start();
  }

  async close(): Promise<void> {
    await this.#sweeper.stop();
    await this.store.close();
  }

  /**
   * Streams a new file in. The same `idempotencyKey` with the same bytes is the same file.
   * @throws MillraceError as {@link receive} and {@link keep} do.
   */
  async create(
    owner: string,
    { idempotencyKey, ...details }: FileDetails & { idempotencyKey?: string },
    content: AsyncIterable<Uint8Array>,
  ): Promise<FileRecord> {
    return await this.keep(await this.receive(owner, content, idempotencyKey), details);
  }

  /**
   * Stores the bytes of a new file; it becomes one by {@link keep}, or must be given to {@link discard}.
   * @throws MillraceError `body_too_large`, `file_limit`, `storage_full`, `storage_unavailable`, and what `content`
   * throws: then nothing is left behind.
   */
  async receive(
    owner: string,
    content: AsyncIterable<Uint8Array>,
    idempotencyKey?: string,
  ): Promise<ReceivedFile> {
    return await this.#uploads.pass('', () => this.#receive(owner, content, idempotencyKey));
  }

  /**
   * Makes a file of what was received. When it resolves, Redis has acknowledged it.
   * @throws MillraceError `idempotency_key_reused` where other bytes were sent under the same key.
   */
  async keep(received: ReceivedFile, { filename, purpose, expiresAt }: FileDetails): Promise<FileRecord> {
    if (received.existing) return await this.#again(received.existing, received);
    const { id, owner, bytes, sha256, segments, receiving } = received;
    const { clock, settings } = this.#parts;
    const createdAt = Math.floor(clock.now());
    const latest = createdAt + settings.fileKeepMs;
    const record: FileRecord = {
      v: 1,
      id,
      owner,
      filename,
      purpose,
      createdAt,
      expiresAt: Math.min(expiresAt ?? latest, latest),
      bytes,
      segments,
      sha256,
    };
    let other: FileRecord | undefined;
    try {
      other = await this.#records.create(record);
    } catch (error) {
      // Its objects stay: Redis may have the record, or get it yet. What no record names is swept.
      await this.#records.withdraw(record).catch(() => undefined);
      await this.#records.release(owner, receiving).catch(() => undefined);
      throw error;
    }
    if (other) {
      await this.discard(received);
      return await this.#again(other, received);
    }
    // What is counted twice for a moment lapses by itself where this fails.
    await this.#records.release(owner, receiving).catch(() => undefined);
    return record;
  }

  /** Leaves nothing of what was received, as far as Redis and the storage can be reached. */
  async discard({ owner, segments, receiving }: ReceivedFile): Promise<void> {
    await this.#removeObjects(segments.map(({ key }) => key));
    await this.#records.release(owner, receiving).catch(() => undefined);
  }

  /**
   * Adopts a file whose objects are in the store already: what a batch has written. The same id again replaces it; it is
   * counted whatever the limits say.
   */
  async adopt(record: FileRecord): Promise<void> {
    await this.#records.adopt(record);
  }

  /** Keeps objects of a file that has no record yet from being swept, until then (epoch ms), or until it is adopted. */
  async hold(id: string, until: number): Promise<void> {
    await this.#records.hold(id, until);
  }

  /** What was held of these may be swept, unless it was adopted. */
  async letGo(ids: readonly string[]): Promise<void> {
    await this.#records.letGo(ids);
  }

  /**
   * @param field that named the file.
   * @throws MillraceError `file_not_found`, also for another owner's.
   */
  async get(id: string, owner: string, field?: string): Promise<FileRecord> {
    return await this.#records.read(id, owner, field);
  }

  /** @throws MillraceError `invalid_input` for an `after` that is not known. */
  async list(owner: string, asked: ListedFiles): Promise<{ records: FileRecord[]; hasMore: boolean }> {
    return await this.#records.list(owner, asked);
  }

  /** @throws MillraceError `file_not_found`. */
  async remove(id: string, owner: string): Promise<void> {
    const record = await this.get(id, owner);
    await this.#records.drop(record);
    await this.#removeObjects(record.segments.map(({ key }) => key));
  }

  /**
   * Its bytes [start, end) across segments, read one segment after another as the reader asks. The stream fails with
   * MillraceError `file_not_found` or `storage_unavailable`.
   */
  open(record: FileRecord, start?: number, end?: number): Readable {
    return openFile(this.store, record, start, end);
  }

  async #receive(
    owner: string,
    content: AsyncIterable<Uint8Array>,
    idempotencyKey: string | undefined,
  ): Promise<ReceivedFile> {
    const parts = {
      records: this.#records,
      store: this.store,
      maxFileBytes: this.#parts.settings.maxFileBytes,
    };
    if (idempotencyKey === undefined) {
      const id = newFileId();
      return await receive(parts, { id, owner, key: objectKey(id, '000000'), existing: undefined }, content);
    }
    const id = namedFileId(owner, idempotencyKey);
    const key = objectKey(id, `000000-${randomBytes(8).toString('hex')}`);
    return await receive(parts, { id, owner, key, existing: await this.#existing(id) }, content);
  }

  async #existing(id: string): Promise<FileRecord | undefined> {
    const record = await this.#records.find(id);
    if (!record || !this.#records.isOver(record)) return record;
    await this.#records.drop(record);
    await this.#removeObjects(record.segments.map(({ key }) => key));
    return undefined;
  }

  /** A file that was there already, if it is the same. */
  async #again(record: FileRecord, { sha256 }: ReceivedFile): Promise<FileRecord> {
    if (record.sha256 !== sha256) {
      throw new MillraceError('idempotency_key_reused', undefined, { field: 'Idempotency-Key' });
    }
    // Whoever kept it may have come no further than its record.
    await this.#records.enlist(record);
    return record;
  }

  /** What can't be removed now is swept later. */
  async #removeObjects(keys: readonly string[]): Promise<void> {
    try {
      await this.store.remove(keys);
    } catch (err) {
      this.#parts.logger.warn({ err }, 'objects of a file could not be removed yet');
    }
  }
}

function objectKey(id: string, name: string): string {
  return `files/${id}/${name}`;
}
