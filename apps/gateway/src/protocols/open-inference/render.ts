import { MillraceError } from '@millrace/shared';
import type { InferResult, OutputColumn } from '../../inference/request.js';
import { JsonWriter } from '../json-writer.js';
import { writeFlat } from '../write-tensor.js';

const COMMA = 0x2c;

/**
 * The answer of an infer call whose items all have answers: tensors with their data flat, row-major.
 * @param id the client's own, echoed.
 * @param names the outputs to answer with, in order.
 */
export function renderInference(
  result: InferResult,
  id: string | undefined,
  names: readonly string[],
): string | Buffer {
  const outputs = names.flatMap((name) => result.outputs.find((column) => column.name === name) ?? []);
  const writer = new JsonWriter();
  writer.raw('{"model_name":').string(result.model.name);
  writer.raw(',"model_version":').string(result.model.version);
  if (id !== undefined) writer.raw(',"id":').string(id);
  if (result.truncated.length > 0) {
    // Parameters are flat by the specification, so the indices are one string.
    writer.raw(`,"parameters":{"truncated":"${result.truncated}"}`);
  }
  writer.raw(',"outputs":[');
  for (const [index, column] of outputs.entries()) {
    if (index > 0) writer.raw(',');
    writeOutput(writer, column, result.model.jsonDigits);
  }
  return writer.raw(']}').end();
}

function writeOutput(writer: JsonWriter, column: OutputColumn, digits: number | undefined): void {
  const shape = [column.items.length, ...column.itemShape];
  writer.raw('{"name":').string(column.name);
  writer.raw(`,"shape":[${shape}],"datatype":"${column.datatype}","data":[`);
  const empty = column.itemShape.includes(0);
  for (const [index, item] of column.items.entries()) {
    if (!item)
      throw new MillraceError('internal', undefined, {}, { cause: new Error(`Item ${index} is missing.`) });
    if (index > 0 && !empty) writer.byte(COMMA);
    writeFlat(writer, column, item, digits);
  }
  writer.raw(']}');
}
