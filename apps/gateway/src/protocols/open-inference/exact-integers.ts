import type { Datatype } from '@millrace/shared';
import { JsonSource } from '../json-source.js';

const PLAIN = /^-?\d+$/;

/**
 * Numbers beyond 2^53 have lost digits when JSON was parsed. Where a 64-bit integer tensor's data holds some,
 * they are read again from the text and put in their places as BigInts; other requests pay one look at each
 * number.
 * @param data as parsed: a list, flat or nested.
 * @param path where it stands in the text: `['inputs', 0, 'data']`.
 */
export function restoreIntegers(
  data: unknown[],
  datatype: Datatype,
  text: Buffer,
  path: readonly (string | number)[],
): void {
  if ((datatype !== 'INT64' && datatype !== 'UINT64') || !holdsInexact(data)) return;
  const source = new JsonSource(text);
  const at = source.find(path);
  if (at === undefined) return;
  const leaves: string[] = [];
  source.eachLeaf(at, (leaf) => leaves.push(leaf));
  let next = 0;
  const restore = (list: unknown[]): void => {
    for (const [i, value] of list.entries()) {
      if (Array.isArray(value)) {
        restore(value);
        continue;
      }
      const leaf = leaves[next++] ?? '';
      if (isInexact(value) && PLAIN.test(leaf)) list[i] = BigInt(leaf);
    }
  };
  restore(data);
}

function holdsInexact(list: readonly unknown[]): boolean {
  return list.some((value) => (Array.isArray(value) ? holdsInexact(value) : isInexact(value)));
}

function isInexact(value: unknown): boolean {
  return typeof value === 'number' && !Number.isSafeInteger(value) && Number.isInteger(value);
}
