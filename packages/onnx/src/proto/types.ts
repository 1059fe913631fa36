import type { ONNX_SCHEMA } from './schema.js';

/** A 64-bit integer off the wire, kept exact as two 32-bit halves. */
export interface Int64Halves {
  low: number;
  high: number;
  unsigned: boolean;
}

/** 64-bit integers: read as halves; when writing, a safe integer will do. */
export type Int64 = number | Int64Halves;

interface Scalars {
  string: string;
  bytes: Uint8Array;
  float: number;
  double: number;
  int32: number;
  int64: Int64;
  uint64: Int64;
}

type Schema = typeof ONNX_SCHEMA;
export type MessageName = keyof Schema;

type One<T> = T extends keyof Scalars ? Scalars[T] : T extends MessageName ? Message<T> : never;

type Field<Spec> = Spec extends `${number} ${infer T}[]`
  ? One<T>[]
  : Spec extends `${number} ${infer T}[packed]`
    ? One<T>[]
    : Spec extends `${number} ${infer T}`
      ? One<T>
      : never;

/**
 * The shape of an ONNX message, derived from the schema table. A message that was read has only its present
 * fields as own properties; an absent one reads as its protobuf default (null for a message).
 */
export type Message<Name extends MessageName> = {
  -readonly [K in keyof Schema[Name]]?: Field<Schema[Name][K]>;
};

export type ModelProto = Message<'ModelProto'>;
export type GraphProto = Message<'GraphProto'>;
export type NodeProto = Message<'NodeProto'>;
export type AttributeProto = Message<'AttributeProto'>;
export type TensorProto = Message<'TensorProto'>;
export type ValueInfoProto = Message<'ValueInfoProto'>;

/** TensorProto.DataType: ONNX's numbers of the element types used here. */
export const DataType = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
} as const;
export type DataType = (typeof DataType)[keyof typeof DataType];

/** AttributeProto.AttributeType: which field of the attribute is in use. */
export const AttributeType = { FLOAT: 1, INT: 2, STRING: 3, GRAPH: 5, INTS: 7 } as const;
