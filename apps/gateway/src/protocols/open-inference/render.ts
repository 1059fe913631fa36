import { MillraceError } from '@millrace/shared';
import type { InferResult, OutputColumn } from '../../inference/request.js';
import type { AnswerWriter } from '../answer-writer.js';
import { JsonWriter } from '../json-writer.js';
import { writeFlat } from '../write-tensor.js';
import { JSON_LENGTH_HEADER } from './binary-body.js';
import type { AskedOutput, ParsedInfer } from './parse.js';

const COMMA = 0x2c;

/**
 * The answer of an infer call whose items all have answers: tensors with their data flat, row-major, in the JSON
 * or, where so asked, as bytes behind it.
 */
export const writeInference: AnswerWriter<Pick<ParsedInfer, 'id' | 'outputs'>> = (
  result,
  _timings,
  asked,
) => {
  const outputs = asked.outputs.flatMap(({ name, binary }) => {
    const column = result.outputs.find((each) => each.name === name);
    return column ? [{ column, binary }] : [];
  });
  const json = writeJson(result, asked.id, outputs);
  const behind = outputs.flatMap(({ column, binary }) => (binary ? itemsOf(column) : []));
  if (!outputs.some(({ binary }) => binary)) return { contentType: 'application/json', body: json };
  const jsonLength = Buffer.byteLength(json);
  return {
    contentType: 'application/octet-stream',
    body: joined(json, jsonLength, behind),
    headers: [JSON_LENGTH_HEADER, String(jsonLength)],
  };
};

interface WrittenOutput extends Pick<AskedOutput, 'binary'> {
  column: OutputColumn;
}

function writeJson(
  result: InferResult,
  id: string | undefined,
  outputs: readonly WrittenOutput[],
): string | Buffer {
  const writer = new JsonWriter();
  writer.raw('{"model_name":').string(result.model.name);
  writer.raw(',"model_version":').string(result.model.version);
  if (id !== undefined) writer.raw(',"id":').string(id);
  if (result.truncated.length > 0) {
    // Parameters are flat by the specification, so the indices are one string.
    writer.raw(`,"parameters":{"truncated":"${result.truncated}"}`);
  }
  writer.raw(',"outputs":[');
  for (const [index, output] of outputs.entries()) {
    if (index > 0) writer.raw(',');
    writeOutput(writer, output, result.model.jsonDigits);
  }
  return writer.raw(']}').end();
}

function writeOutput(
  writer: JsonWriter,
  { column, binary }: WrittenOutput,
  digits: number | undefined,
): void {
  const shape = [column.items.length, ...column.itemShape];
  writer.raw('{"name":').string(column.name);
  writer.raw(`,"shape":[${shape}],"datatype":"${column.datatype}"`);
  if (binary) {
    const bytes = itemsOf(column).reduce((sum, item) => sum + item.byteLength, 0);
    writer.raw(`,"parameters":{"binary_data_size":${bytes}}}`);
    return;
  }
  writer.raw(',"data":[');
  const empty = column.itemShape.includes(0);
  for (const [index, item] of itemsOf(column).entries()) {
    if (index > 0 && !empty) writer.byte(COMMA);
    writeFlat(writer, column, item, digits);
  }
  writer.raw(']}');
}

function itemsOf(column: OutputColumn): Uint8Array[] {
  return column.items.map((item, index) => {
    if (item) return item;
    throw new MillraceError('internal', undefined, {}, { cause: new Error(`Item ${index} is missing.`) });
  });
}

/** The one copy on an answer's way out. */
function joined(json: string | Buffer, jsonLength: number, tensors: readonly Uint8Array[]): Buffer {
  const bytes = tensors.reduce((sum, tensor) => sum + tensor.byteLength, jsonLength);
  const body = Buffer.allocUnsafe(bytes);
  if (typeof json === 'string') body.write(json, 'utf8');
  else body.set(json);
  let at = jsonLength;
  for (const tensor of tensors) {
    body.set(tensor, at);
    at += tensor.byteLength;
  }
  return body;
}
