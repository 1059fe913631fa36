import { Readable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import type { FileRecord } from './file-record.js';
import type { FileStore } from './store.js';

const KIB = 1024;
/** What is read ahead of the reader. */
const AHEAD_BYTES = 64 * KIB;

/** Bytes [start, end) of a file, read one object after another as the reader asks. */
export function openFile(store: FileStore, record: FileRecord, start = 0, end = record.bytes): Readable {
  return Readable.from(bytesOf(store, record, start, end), {
    objectMode: false,
    highWaterMark: AHEAD_BYTES,
  });
}

async function* bytesOf(
  store: FileStore,
  { id, segments }: FileRecord,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  let at = 0;
  for (const { key, bytes } of segments) {
    const from = Math.max(0, start - at);
    const to = Math.min(bytes, end - at);
    at += bytes;
    if (from >= to) continue;
    let left = to - from;
    const object = await store.read(key, from, to);
    try {
      for await (const chunk of object) {
        left -= (chunk as Buffer).byteLength;
        yield chunk as Buffer;
      }
    } catch (cause) {
      throw unreadable(cause);
    }
    if (left !== 0) throw unreadable(new Error(`${left} bytes of an object of ${id} are not there`));
  }
}

function unreadable(cause: unknown): MillraceError {
  return new MillraceError('storage_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
}
