import { Readable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import type { FileRecord } from './file-record.js';
import type { FileStore } from './store.js';

const KIB = 1024;
/** What is read ahead of the reader. */
const AHEAD_BYTES = 64 * KIB;

/** Bytes [start, end) of a file, read one object after another as the reader asks. */
export function openFile(store: FileStore, record: FileRecord, start = 0, end = record.bytes): Readable {
  const reading: Reading = {};
  const stream = Readable.from(bytesOf(store, record, start, end, reading), {
    objectMode: false,
    highWaterMark: AHEAD_BYTES,
  });
  // By itself it would wait for the next bytes of an object before it lets go: a storage may never send them.
  const destroy = stream._destroy.bind(stream);
  stream._destroy = (error, done) => {
    reading.object?.destroy();
    destroy(error, done);
  };
  return stream;
}

interface Reading {
  /** What is being read now. */
  object?: Readable;
}

async function* bytesOf(
  store: FileStore,
  { id, segments }: FileRecord,
  start: number,
  end: number,
  reading: Reading,
): AsyncGenerator<Buffer> {
  let at = 0;
  for (const { key, bytes } of segments) {
    const from = Math.max(0, start - at);
    const to = Math.min(bytes, end - at);
    at += bytes;
    if (from >= to) continue;
    let left = to - from;
    const object = await store.read(key, from, to);
    reading.object = object;
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
