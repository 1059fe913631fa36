import { createHash } from 'node:crypto';
import type { RawItem } from '../tasks/task.js';

/** Bytes before a BYTES element that say its length. */
const LENGTH_BYTES = 4;

/**
 * SHA-256 of an item's input, to find it again in a client's data: the bytes of its tensors in the order of
 * their names. Of a text that is the hash of its UTF-8.
 */
export function inputHash({ inputs }: RawItem): string {
  const hash = createHash('sha256');
  const byName = [...inputs].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [, { datatype, data }] of byName) {
    if (datatype !== 'BYTES') hash.update(data);
    else for (const element of elements(data)) hash.update(element);
  }
  return hash.digest('hex');
}

function* elements(data: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at + LENGTH_BYTES <= data.length; ) {
    const end = at + LENGTH_BYTES + view.getUint32(at, true);
    yield data.subarray(at + LENGTH_BYTES, end);
    at = end;
  }
}
