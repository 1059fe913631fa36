import { bytesTensor, MillraceError, type Tensor } from '@millrace/shared';

const LARGEST = 2 ** 32 - 1;

/**
 * The input of operations on token ids: BYTES `token_ids` [items], each element uint32 little-endian.
 * @param fieldOf names the list of an index as the client wrote it.
 * @throws MillraceError `invalid_input` naming the first that is no list of ids, or empty.
 */
export function readTokenIds(values: readonly unknown[], fieldOf: (index: number) => string): Tensor {
  const elements = values.map((ids, index) => {
    if (!Array.isArray(ids)) throw invalid(fieldOf(index), 'must be a list of token ids', index);
    if (ids.length === 0) throw invalid(fieldOf(index), 'must not be empty', index);
    const bytes = Buffer.allocUnsafe(4 * ids.length);
    for (let at = 0; at < ids.length; at++) {
      const id: unknown = ids[at];
      if (!Number.isSafeInteger(id) || (id as number) < 0 || (id as number) > LARGEST) {
        throw invalid(`${fieldOf(index)}[${at}]`, `must be a whole number from 0 to ${LARGEST}`, index);
      }
      bytes.writeUInt32LE(id as number, 4 * at);
    }
    return bytes;
  });
  return bytesTensor('token_ids', elements);
}

function invalid(field: string, fault: string, index: number): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field, index });
}
