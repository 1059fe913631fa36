import { bytesElements, elementBytes, elementCount, MillraceError } from '@millrace/shared';
import type { OutputColumn } from '../inference/request.js';
import { floatsOf, requireJsonForm, writeElement } from './elements.js';
import type { JsonWriter } from './json-writer.js';

const COMMA = 0x2c;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Writes one item of an output: nested lists by its shape, a bare value for a scalar.
 * @param digits significant digits of FP32; absent: exact.
 * @throws MillraceError `invalid_input` for a datatype, or bytes, that JSON has no form for.
 */
export function writeItem(writer: JsonWriter, column: OutputColumn, item: Uint8Array, digits?: number): void {
  if (column.itemShape.length === 1) {
    writer.raw('[');
    writeFlat(writer, column, item, digits);
    writer.raw(']');
    return;
  }
  const writeAt = elementWriter(writer, column, item, digits);
  let at = 0;
  const nest = (axis: number): void => {
    const size = column.itemShape[axis];
    if (size === undefined) {
      writeAt(at++);
      return;
    }
    writer.raw('[');
    for (let i = 0; i < size; i++) {
      if (i > 0) writer.byte(COMMA);
      nest(axis + 1);
    }
    writer.raw(']');
  };
  nest(0);
}

/** Writes the elements of one item with commas between, as in a flat list. Errors as {@link writeItem}. */
export function writeFlat(writer: JsonWriter, column: OutputColumn, item: Uint8Array, digits?: number): void {
  if (column.datatype === 'FP32' && digits !== undefined) {
    writer.roundedList(floatsOf(item), digits);
    return;
  }
  const writeAt = elementWriter(writer, column, item, digits);
  const count = elementCount(column.itemShape);
  for (let i = 0; i < count; i++) {
    if (i > 0) writer.byte(COMMA);
    writeAt(i);
  }
}

function elementWriter(
  writer: JsonWriter,
  column: OutputColumn,
  item: Uint8Array,
  digits: number | undefined,
): (index: number) => void {
  const { name, datatype, itemShape } = column;
  requireJsonForm(datatype, `output ${name}`);
  if (datatype === 'BYTES') {
    const elements = bytesElements({ name, datatype, shape: itemShape, data: item });
    return (index) => void writer.string(textOf(elements[index], name));
  }
  if (datatype === 'FP32' && digits !== undefined) {
    const floats = floatsOf(item);
    return (index) => void writer.rounded(floats[index] ?? 0, digits);
  }
  const view = new DataView(item.buffer, item.byteOffset, item.byteLength);
  const bytes = elementBytes(datatype);
  return (index) => writeElement(writer, datatype, view, index * bytes);
}

function textOf(bytes: Uint8Array | undefined, output: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new MillraceError(
      'invalid_input',
      `Output ${output} holds bytes that are not text: JSON can't say them.`,
      {
        field: output,
      },
    );
  }
}
