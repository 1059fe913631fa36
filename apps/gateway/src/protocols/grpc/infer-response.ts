import { MillraceError } from '@millrace/shared';
import type { InferResult, OutputColumn } from '../../inference/request.js';
import { WireWriter } from './wire.js';

/** What one request asked of its answer. */
export interface AskedOfAnswer {
  /** The client's own, echoed. */
  id: string;
  /** Names of the outputs to answer with, in order. */
  outputs: readonly string[];
  /** Whether the answer must say that it is the last one to its request. */
  sayFinal: boolean;
}

/**
 * Encodes a ModelInferResponse of a request whose items all have answers: tensors raw, straight from the items.
 * @throws MillraceError `internal` when an item is missing.
 */
export function encodeInferResponse(result: InferResult, asked: AskedOfAnswer): WireWriter {
  const { model, truncated } = result;
  const columns = asked.outputs.flatMap(
    (name) => result.outputs.find((column) => column.name === name) ?? [],
  );
  const writer = new WireWriter().string(1, model.name).string(2, model.version).string(3, asked.id);
  if (truncated.length > 0) {
    // As at the HTTP door: the indices as one string.
    writer.message(4, parameter('truncated', new WireWriter().string(3, truncated.join())));
  }
  if (asked.sayFinal) writer.message(4, parameter('triton_final_response', new WireWriter().bool(1, true)));
  for (const column of columns) writer.message(5, outputOf(column));
  for (const column of columns) writeRaw(writer, column);
  return writer;
}

/** Encodes a ModelStreamInferResponse that holds an encoded ModelInferResponse. */
export function encodeStreamAnswer(answer: Buffer): Buffer {
  return new WireWriter().head(2, answer.byteLength).raw(answer).end();
}

/** Encodes a ModelStreamInferResponse for a request that failed; the id lets the client tell which. */
export function encodeStreamError(message: string, model: string, id: string): Buffer {
  const about = new WireWriter().string(1, model).string(3, id);
  return new WireWriter().string(1, message).message(2, about).end();
}

/** An entry of a map<string, InferParameter>. */
function parameter(name: string, value: WireWriter): WireWriter {
  return new WireWriter().string(1, name).message(2, value);
}

function outputOf(column: OutputColumn): WireWriter {
  return new WireWriter()
    .string(1, column.name)
    .string(2, column.datatype)
    .sizes(3, [column.items.length, ...column.itemShape]);
}

function writeRaw(writer: WireWriter, { name, items }: OutputColumn): void {
  let bytes = 0;
  for (const item of items) {
    if (!item) {
      const cause = new Error(`An item of output ${name} is missing.`);
      throw new MillraceError('internal', undefined, {}, { cause });
    }
    bytes += item.byteLength;
  }
  writer.head(6, bytes);
  for (const item of items) if (item) writer.raw(item);
}
