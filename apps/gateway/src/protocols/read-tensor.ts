import {
  bytesTensor,
  type Datatype,
  elementBytes,
  elementCount,
  MillraceError,
  type Tensor,
} from '@millrace/shared';
import { codecOf, type PlainDatatype, requireJsonForm } from './elements.js';

/** One piece of a tensor as it came: a scalar or nested arrays. */
export interface JsonPiece {
  value: unknown;
  /** Where it came from, for errors: `inputs[3].fp32`. */
  field: string;
  /** Index of its item, where it is one. */
  index?: number;
  /** What says the shape that it must have, for errors: `inputs[0]`. */
  shapeFrom: string;
}

/**
 * Builds a tensor from pieces that lie behind one another, row-major.
 * @param pieceShape the shape that each piece must have; its arrays are all compared with it before anything
 * is allocated, so that a small body can't claim a large tensor.
 * @param shape the whole tensor's shape.
 * @param exact whether integers beyond 2^53 come as BigInts.
 * @throws MillraceError `invalid_input` naming the field at fault, down to the element.
 */
export function readTensor(
  name: string,
  datatype: Datatype,
  shape: number[],
  pieces: readonly JsonPiece[],
  pieceShape: readonly number[],
  exact = false,
): Tensor {
  requireJsonForm(datatype, pieces[0]?.field ?? name);
  for (const piece of pieces) {
    const path = misshapen(piece.value, pieceShape, 0);
    if (path !== undefined) throw shapeFault(piece, path, pieceShape);
  }
  const texts: string[] = [];
  const bytes = elementBytes(datatype);
  const data = new Uint8Array(elementCount(shape) * bytes);
  const codec = datatype === 'BYTES' ? textCodec(texts) : elementCodec(datatype, data, bytes, exact);
  for (const piece of pieces) {
    const path = visit(piece.value, pieceShape.length, codec.take);
    if (path !== undefined) {
      const field = piece.field + path;
      throw fault(`${field} must be ${codec.what}.`, field, piece);
    }
  }
  return datatype === 'BYTES' ? bytesTensor(name, texts, shape) : { name, datatype, shape, data };
}

/** Takes the elements of a tensor one after another; false for one that doesn't belong. */
interface ElementSink {
  what: string;
  take(value: unknown): boolean;
}

function elementCodec(datatype: PlainDatatype, data: Uint8Array, bytes: number, exact: boolean): ElementSink {
  const { what, whatExactly = what, write } = codecOf(datatype);
  const view = new DataView(data.buffer);
  let at = -bytes;
  return {
    what: exact ? whatExactly : what,
    take: (value) => {
      at += bytes;
      return write(view, at, value);
    },
  };
}

function textCodec(texts: string[]): ElementSink {
  return {
    what: 'a string without lone surrogates',
    take: (value) => {
      if (typeof value !== 'string' || !value.isWellFormed()) return false;
      texts.push(value);
      return true;
    },
  };
}

/** The shape that a nested value shows along its first elements. */
export function shapeOf(value: unknown): number[] {
  const shape: number[] = [];
  for (let at = value; Array.isArray(at); at = at[0]) shape.push(at.length);
  return shape;
}

/** Compares every array with the shape, not looking at elements; the path of the first that differs. */
function misshapen(value: unknown, shape: readonly number[], axis: number): string | undefined {
  if (axis === shape.length) return undefined;
  if (!Array.isArray(value) || value.length !== shape[axis]) return '';
  if (axis + 1 === shape.length) return undefined;
  for (let i = 0; i < value.length; i++) {
    const path = misshapen(value[i], shape, axis + 1);
    if (path !== undefined) return `[${i}]${path}`;
  }
  return undefined;
}

/** Gives every element to `take`, row-major; the path of the first that it refuses. */
function visit(value: unknown, depth: number, take: (value: unknown) => boolean): string | undefined {
  if (depth === 0) return take(value) ? undefined : '';
  const list = value as unknown[];
  for (let i = 0; i < list.length; i++) {
    const path = visit(list[i], depth - 1, take);
    if (path !== undefined) return `[${i}]${path}`;
  }
  return undefined;
}

function shapeFault(piece: JsonPiece, path: string, shape: readonly number[]): MillraceError {
  const field = piece.field + path;
  return fault(`${field} doesn't fit the shape [${shape}], which ${piece.shapeFrom} says.`, field, piece);
}

function fault(message: string, field: string, piece: JsonPiece): MillraceError {
  return new MillraceError('invalid_input', message, {
    field,
    ...(piece.index === undefined ? {} : { index: piece.index }),
  });
}
