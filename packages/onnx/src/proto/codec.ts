import protobuf from 'protobufjs/light.js';
import { ONNX_SCHEMA } from './schema.js';
import type { Int64, MessageName, ModelProto } from './types.js';

const EXPANDED = { features: { repeated_field_encoding: 'EXPANDED' } };

/**
 * Edition 2023 is proto3 with presence for every field: a zero that was written stays written, which proto3
 * would drop and proto2 files (the Python library's) contain.
 */
function buildRoot(): protobuf.Root {
  const nested: Record<string, protobuf.IType> = {};
  for (const [message, specs] of Object.entries(ONNX_SCHEMA)) {
    const fields: Record<string, protobuf.IField> = {};
    for (const [name, spec] of Object.entries<string>(specs)) {
      const [id, declared] = spec.split(' ') as [string, string];
      const type = flatName(declared.replace(/\[.*\]$/, ''));
      if (!declared.endsWith(']')) fields[name] = { id: Number(id), type };
      else if (declared.endsWith('[packed]')) fields[name] = { id: Number(id), type, rule: 'repeated' };
      else fields[name] = { id: Number(id), type, rule: 'repeated', options: EXPANDED };
    }
    nested[flatName(message)] = { edition: '2023', fields };
  }
  const root = protobuf.Root.fromJSON({ nested });
  root.resolveAll();
  return root;
}

/** Nesting of message types is a matter of names only; the wire doesn't know it. */
const flatName = (name: string): string => name.replace('.', '_');

let root: protobuf.Root | undefined;

function typeOf(name: MessageName): protobuf.Type {
  root ??= buildRoot();
  return root.lookupType(flatName(name));
}

/**
 * Reads an ONNX file. Byte fields are views of `bytes` (a 90 MB file is read without copying its weights), and
 * fields that the schema doesn't know are kept and written back by {@link writeModel}.
 *
 * @throws Error when the bytes are no protobuf of a ModelProto, are cut off, or hold a string that isn't UTF-8.
 */
export function readModel(bytes: Uint8Array): ModelProto {
  const reader = protobuf.Reader.create(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  reader.discardUnknown = false;
  try {
    return typeOf('ModelProto').decode(reader) as ModelProto;
  } catch (error) {
    throw new Error(`not a readable ONNX file: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Writes a model as an ONNX file; fields in the order of their numbers, unknown ones after them. */
export function writeModel(model: ModelProto): Uint8Array {
  return typeOf('ModelProto').encode(model).finish();
}

/** The exact value of a 64-bit field. */
export function toBigInt(value: Int64): bigint {
  if (typeof value === 'number') return BigInt(value);
  const bits = (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
  return value.unsigned ? bits : BigInt.asIntN(64, bits);
}
