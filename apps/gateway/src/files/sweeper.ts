import { FILES_SWEEP_KEY, type Logger } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { FILES_PREFIX, type FileRecord, fileOfKey } from './file-record.js';
import type { FileRecords } from './file-records.js';
import type { FileStore } from './store.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** One gateway sweeps, and for a little less than this no other does. */
const EVERY_MS = HOUR_MS;
/** The first time after a start, in ms, and up to as much again, so that gateways that start together do not meet. */
const FIRST_MS = 2 * MINUTE_MS;
/** An object that no record names is somebody's who is still writing, until it is so old, in ms. */
const UNNAMED_MS = 24 * HOUR_MS;
/** Expired files, or objects, that are looked at together. */
const MOST = 100;

export interface SweeperParts {
  redis: Redis;
  records: FileRecords;
  store: FileStore;
  logger: Logger;
}

/** Deletes files whose time is over, and objects that no file names. */
export class FileSweeper {
  readonly #parts: SweeperParts;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(parts: SweeperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#wait(FIRST_MS * (1 + Math.random()));
  }

  /** Resolves when nothing is swept any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Sweeps, unless another gateway has done so lately. */
  async sweepInTurn(): Promise<void> {
    const { logger, redis } = this.#parts;
    try {
      const isOurs = await redis.set(FILES_SWEEP_KEY, '1', 'PX', EVERY_MS - 5 * MINUTE_MS, 'NX');
      if (isOurs) await this.sweep();
    } catch (err) {
      logger.warn({ err }, 'files could not be swept; it is tried again within the hour');
    }
  }

  /** @returns how many files and objects were deleted. */
  async sweep(): Promise<{ files: number; objects: number }> {
    const swept = { files: await this.#expired(), objects: await this.#unnamed() };
    this.#parts.logger.info(swept, 'files were swept');
    return swept;
  }

  #wait(ms: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.sweepInTurn().then(() => this.#wait(EVERY_MS));
    }, ms);
    this.#timer.unref();
  }

  async #expired(): Promise<number> {
    const { records, store } = this.#parts;
    let files = 0;
    for (let due = await records.due(MOST); due.length > 0 && !this.#stopped; due = await records.due(MOST)) {
      for (const id of due) {
        const record = await records.find(id);
        // It was made anew since, or there is none.
        if (!record || !records.isOver(record)) {
          await records.noteExpiry(id, record?.expiresAt);
          continue;
        }
        await store.remove(record.segments.map(({ key }) => key));
        await records.drop(record);
        files += 1;
      }
    }
    return files;
  }

  async #unnamed(): Promise<number> {
    const { store, redis } = this.#parts;
    // Not by this process's own clock: one that is wrong would have others lose what they are writing.
    const [seconds] = await redis.time();
    const oldest = Number(seconds) * 1000 - UNNAMED_MS;
    let objects = 0;
    let old: string[] = [];
    const removeOld = async (): Promise<void> => {
      await store.remove(old);
      objects += old.length;
      old = [];
    };
    const named = new NamedObjects(this.#parts.records);
    for await (const object of store.list(FILES_PREFIX)) {
      if (this.#stopped) break;
      if (object.modifiedAt >= oldest || (await named.has(object.key))) continue;
      old.push(object.key);
      if (old.length === MOST) await removeOld();
    }
    await removeOld();
    return objects;
  }
}

/** Which objects a record names. Those of one file come one after another. */
class NamedObjects {
  #id = '';
  #keys: ReadonlySet<string> | 'all' = new Set();

  constructor(private readonly records: FileRecords) {}

  async has(key: string): Promise<boolean> {
    const id = fileOfKey(key);
    // Not of our making.
    if (id === undefined) return true;
    if (id !== this.#id) {
      // In this order: what is adopted meanwhile has its record before it is let go.
      this.#keys = (await this.records.isHeld(id)) ? 'all' : keysOf(await this.records.find(id));
      this.#id = id;
    }
    return this.#keys === 'all' || this.#keys.has(key);
  }
}

function keysOf(record: FileRecord | undefined): ReadonlySet<string> {
  return new Set(record?.segments.map(({ key }) => key));
}
