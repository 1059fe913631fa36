import type { ItemFault, Prepared, RawItem } from './task.js';
import type { TextTokenizer } from './tokenizing.js';

const INPUT = 'token_ids';
const ID_BYTES = 4;

/**
 * An item of the operation `embed-tokens`: ids that a client's tokenizer made of a text, checked against the
 * vocabulary, completed and cut as a text's own would be. Costs too little for a thread of the pool.
 */
export function prepareTokenIds(
  item: RawItem,
  tokenizer: TextTokenizer,
  maxTokens: number,
): Prepared | ItemFault {
  const found = tokenIdsOf(item);
  if ('code' in found) return found;
  const unknown = tokenizer.unknownId(found);
  if (unknown !== undefined) return invalid(`The vocabulary has no token of the id ${unknown}.`);
  const { ids, truncated } = tokenizer.complete(found, maxTokens);
  const count = ids.length;
  return { size: count, shapeKey: '', truncated, tokens: count, value: Int32Array.from(ids) };
}

/** The ids of one BYTES element, uint32 little-endian. */
function tokenIdsOf(item: RawItem): number[] | ItemFault {
  const input = item.inputs.get(INPUT);
  if (input?.datatype !== 'BYTES') return invalid(`The item has no BYTES input "${INPUT}".`);
  if (input.shape.some((size) => size !== 1)) return invalid(`The item has more than one "${INPUT}".`);
  // Behind the element's own length.
  const bytes = input.data.subarray(ID_BYTES);
  if (bytes.byteLength === 0) return invalid('The item has no token ids.');
  if (bytes.byteLength % ID_BYTES !== 0) return invalid('The token ids are not of four bytes each.');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / ID_BYTES }, (_, i) => view.getUint32(i * ID_BYTES, true));
}

function invalid(message: string): ItemFault {
  return { code: 'invalid_input', message };
}
