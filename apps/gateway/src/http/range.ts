import { MillraceError } from '@millrace/shared';

/** Bytes [start, end) of something. */
export interface ByteRange {
  start: number;
  end: number;
}

const ONE_RANGE = /^bytes *= *(\d*)-(\d*) *$/i;

/**
 * Reads a `Range` (RFC 9110, section 14). Several ranges at once, other units and what can't be read ask for nothing:
 * the whole is the answer.
 * @throws MillraceError `range_not_satisfiable` where there are no such bytes.
 */
export function rangeOf(header: string | undefined, bytes: number): ByteRange | undefined {
  const [, first = '', last = ''] = ONE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (start >= end) {
    throw new MillraceError(
      'range_not_satisfiable',
      `There are ${bytes} bytes; none of them is in this range.`,
      {
        field: 'Range',
      },
    );
  }
  return { start, end };
}
