import { randomUUID } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, open, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { MillraceError, makeFolder } from '@millrace/shared';
import { type FileStore, Incoming, requireKey, type StoredObject } from './store.js';

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** What is being written is not named as a key can be. */
const TEMPORARY = /^\..*\.tmp$/;
/** A temporary file that was not written to for so long is of a process that has died, in ms. */
const ABANDONED_MS = 3600_000;
/** Tries to begin a file whose folder somebody else removes because it is empty. */
const TRIES = 5;

const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR']);

/** Begins a temporary file. */
export type Begin = (path: string) => Promise<FileHandle>;

const begin: Begin = (path) =>
  open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, FILE_MODE);

/** Objects as files under a folder, a folder for each step of their keys. */
export class LocalStore implements FileStore {
  readonly #root: string;
  readonly #begin: Begin;

  /** @param root is made when the first object is written. */
  constructor(root: string, options: { begin?: Begin } = {}) {
    this.#root = resolve(root);
    this.#begin = options.begin ?? begin;
  }

  async put(key: string, content: AsyncIterable<Uint8Array>): Promise<number> {
    const path = this.#pathOf(key);
    const incoming = new Incoming(content);
    const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
    try {
      const file = await this.#start(temporary);
      try {
        for await (const chunk of incoming) await writeAll(file, chunk);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await this.#syncFolders(dirname(path));
      return incoming.bytes;
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      await this.#tidy(dirname(path));
      throw incoming.fault ? incoming.fault.error : faultOf(error);
    }
  }

  async read(key: string, start = 0, end = Number.POSITIVE_INFINITY): Promise<Readable> {
    const file = await open(this.#pathOf(key), 'r').catch((error: NodeJS.ErrnoException) => {
      if (NOT_THERE.has(error.code ?? ''))
        throw new MillraceError('file_not_found', undefined, {}, { cause: error });
      throw faultOf(error);
    });
    if (end > start) return file.createReadStream({ start, end: end - 1 });
    await file.close();
    return Readable.from([], { objectMode: false });
  }

  async remove(keys: readonly string[]): Promise<void> {
    const folders = new Set<string>();
    for (const key of keys) {
      const path = this.#pathOf(key);
      folders.add(dirname(path));
      await unlink(path).catch((error: NodeJS.ErrnoException) => {
        if (!NOT_THERE.has(error.code ?? '')) throw faultOf(error);
      });
    }
    for (const folder of folders) await this.#tidy(folder);
  }

  /** Sweeps away, as it goes, what processes that died have left half written. */
  async *list(prefix: string): AsyncGenerator<StoredObject> {
    // A prefix may end within a name.
    const from = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    if (from !== '') requireKey(from.slice(0, -1));
    for await (const object of this.#listFolder(from)) if (object.key.startsWith(prefix)) yield object;
  }

  async close(): Promise<void> {
    // Nothing is held between calls.
  }

  async *#listFolder(at: string): AsyncGenerator<StoredObject> {
    for (const entry of await this.#entriesOf(at)) {
      const key = at + entry.name;
      if (entry.isDirectory()) {
        yield* this.#listFolder(`${key}/`);
        await this.#tidy(join(this.#root, key));
        continue;
      }
      const path = join(this.#root, key);
      // Gone since it was listed.
      const found = await stat(path).catch(() => undefined);
      if (!found?.isFile()) continue;
      if (!TEMPORARY.test(entry.name)) yield { key, bytes: found.size, modifiedAt: found.mtimeMs };
      else if (await this.#isAbandoned(found.mtimeMs)) await unlink(path).catch(() => undefined);
    }
  }

  /** Whether something half written is so old that nobody writes it any more. */
  async #isAbandoned(modifiedAt: number): Promise<boolean> {
    if (Date.now() - modifiedAt <= ABANDONED_MS) return false;
    // The clock of this process may be wrong: the storage's counts.
    const probe = join(this.#root, `.${randomUUID()}.tmp`);
    try {
      await (await begin(probe)).close();
      return (await stat(probe)).mtimeMs - modifiedAt > ABANDONED_MS;
    } catch {
      // Full, or gone meanwhile: the next look tells.
      return false;
    } finally {
      await unlink(probe).catch(() => undefined);
    }
  }

  async #entriesOf(at: string): Promise<Dirent[]> {
    try {
      const entries = await readdir(join(this.#root, at), { withFileTypes: true });
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      if (NOT_THERE.has((error as NodeJS.ErrnoException).code ?? '')) return [];
      throw faultOf(error);
    }
  }

  #pathOf(key: string): string {
    requireKey(key);
    return join(this.#root, key);
  }

  async #start(temporary: string): Promise<FileHandle> {
    for (let tried = 1; ; tried++) {
      try {
        await makeFolder(dirname(temporary), FOLDER_MODE);
        return await this.#begin(temporary);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tried === TRIES) throw error;
      }
    }
  }

  /** A name is on disk when its folder is, which may be new itself. */
  async #syncFolders(folder: string): Promise<void> {
    for (let at = folder; at.startsWith(this.#root); at = dirname(at)) {
      const handle = await open(at, 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
  }

  /** Removes a folder of keys that has become empty, and those above it. */
  async #tidy(folder: string): Promise<void> {
    for (let at = folder; at.startsWith(this.#root) && at !== this.#root; at = dirname(at)) {
      try {
        await rmdir(at);
      } catch {
        // Something is in it, or it has gone.
        return;
      }
    }
  }
}

/** A file takes less than all of it where it meets a limit on its way: the next call says which. */
async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.byteLength; ) {
    const { bytesWritten } = await file.write(chunk, at, chunk.byteLength - at);
    at += bytesWritten;
  }
}

function faultOf(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (NO_ROOM.has(code)) return new MillraceError('storage_full', undefined, {}, { cause: error });
  return new MillraceError('storage_unavailable', undefined, { retryAfterSeconds: 1 }, { cause: error });
}
