import { type ItemOutcome, MillraceError, type Reply, type Stamps, splitItems } from '@millrace/shared';
import type { InferRequest, InferResult, OutputColumn } from './request.js';

/**
 * Puts the replies of a request's parts together, in item order. A reply's outputs count only its answered
 * items; here each answer goes to its item's own place.
 * @throws MillraceError `internal` when a reply contradicts itself or its part.
 */
export function gather(
  request: Pick<InferRequest, 'requestId' | 'model' | 'itemCount' | 'fieldOf' | 'stamps'>,
  parts: readonly { firstItem: number; count: number }[],
  replies: readonly Reply[],
): InferResult {
  const items: ItemOutcome[] = [];
  const columns = new Map<string, OutputColumn>();
  const workers = new Set<string>();
  let stamps: Stamps = {};
  for (const [index, reply] of replies.entries()) {
    const { header, outputs } = reply;
    const part = parts[index];
    if (!part || header.items.length !== part.count)
      throw contradiction('it counts other items than its part');
    items.push(...header.items);
    workers.add(header.worker);
    if ((header.stamps.replied ?? 0) >= (stamps.replied ?? 0)) stamps = header.stamps;
    const answered: number[] = [];
    for (const [at, item] of header.items.entries()) {
      if (item.status === 'ok') answered.push(part.firstItem + at);
    }
    for (const output of outputs) {
      if (output.shape[0] !== answered.length) throw contradiction(`${output.name} counts other items`);
      const column = columnOf(
        columns,
        output.name,
        output.datatype,
        output.shape.slice(1),
        request.itemCount,
      );
      const cuts = splitItems(output);
      for (const [at, item] of answered.entries()) column.items[item] = cuts[at];
    }
  }
  return {
    requestId: request.requestId,
    model: request.model,
    fieldOf: request.fieldOf,
    items,
    outputs: [...columns.values()],
    stamps: { ...stamps, received: request.stamps.received },
    workers: [...workers],
    ...countTokens(items),
  };
}

function columnOf(
  columns: Map<string, OutputColumn>,
  name: string,
  datatype: OutputColumn['datatype'],
  itemShape: number[],
  itemCount: number,
): OutputColumn {
  let column = columns.get(name);
  if (!column) {
    column = { name, datatype, itemShape, items: new Array(itemCount).fill(undefined) };
    columns.set(name, column);
  } else if (column.datatype !== datatype || column.itemShape.join() !== itemShape.join()) {
    throw contradiction(`${name} has another shape in another part`);
  }
  return column;
}

/** Which of the items were cut to the model's limit, and the tokens of all. */
export function countTokens(items: readonly ItemOutcome[]): { truncated: number[]; tokens: number } {
  const truncated: number[] = [];
  let tokens = 0;
  for (const [index, item] of items.entries()) {
    if (item.status !== 'ok') continue;
    if (item.truncated) truncated.push(index);
    tokens += item.tokens ?? 0;
  }
  return { truncated, tokens };
}

function contradiction(why: string): MillraceError {
  return new MillraceError('internal', undefined, {}, { cause: new Error(`A reply is not usable: ${why}.`) });
}
