import type { ItemError } from '@millrace/shared';
import type { Timing } from '../../http/respond.js';
import { itemErrors } from '../../inference/item-errors.js';
import type { InferResult } from '../../inference/request.js';
import type { AnswerWriter } from '../answer-writer.js';
import { JsonWriter } from '../json-writer.js';
import { writeItem } from '../write-tensor.js';

/** The answer of a predict call. */
export const writePrediction: AnswerWriter<undefined> = (result, timings) => ({
  contentType: 'application/json; charset=utf-8',
  body: renderPrediction(result, timings),
});

/**
 * The answer of a predict call. An output is an array of numbers for an embedding, an object of nested
 * arrays for tensors, and null where the item failed.
 */
function renderPrediction(result: InferResult, timings: readonly Timing[]): string | Buffer {
  const { requestId, model, truncated } = result;
  const writer = new JsonWriter();
  writer.raw('{"id":').string(requestId);
  writer.raw(',"model":').string(model.name);
  writer.raw(',"version":').string(model.version);
  writer.raw(',"outputs":[');
  for (const [index, item] of result.items.entries()) {
    if (index > 0) writer.raw(',');
    if (item.status === 'ok') writeOutput(writer, result, index);
    else writer.raw('null');
  }
  writer.raw(']');
  if (truncated.length > 0) writer.raw(`,"truncated":[${truncated}]`);
  const errors: ItemError[] = itemErrors(result);
  if (errors.length > 0) writer.raw(`,"errors":${JSON.stringify(errors)}`);
  writer.raw(',"timings":{');
  for (const [index, { name, ms }] of timings.entries()) writer.raw(`${index > 0 ? ',' : ''}"${name}":${ms}`);
  return writer.raw('}}').end();
}

function writeOutput(writer: JsonWriter, { model, outputs }: InferResult, index: number): void {
  if (model.task === 'text-embedding') {
    const column = outputs[0];
    const item = column?.items[index];
    if (column && item) writeItem(writer, column, item, model.jsonDigits);
    else writer.raw('null');
    return;
  }
  writer.raw('{');
  let first = true;
  for (const column of outputs) {
    const item = column.items[index];
    if (!item) continue;
    writer
      .raw(first ? '' : ',')
      .string(column.name)
      .raw(':');
    writeItem(writer, column, item, model.jsonDigits);
    first = false;
  }
  writer.raw('}');
}
