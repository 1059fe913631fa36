import { isUtf8 } from 'node:buffer';
import {
  bytesElements,
  checkTensor,
  elementCount,
  isDatatype,
  MillraceError,
  type ModelDescription,
  type Tensor,
  type TensorSpec,
} from '@millrace/shared';
import { quoted } from './client-names.js';
import { requireItemCount } from './limits.js';

/**
 * What a client declares of tensors, compared with the model, whatever form the data comes in. Every door that
 * takes tensors by name asks here: a server that trusts a declared shape hands one client's answer to another.
 */

export const MAX_AXES = 32;

/** An input as a client declares it. */
export interface DeclaredTensor {
  name: string;
  datatype: string;
  shape: readonly number[];
}

/** A declared input that the model takes. */
export interface ModelInput {
  spec: TensorSpec;
  /** As many axes as the model's: [N,1] was taken for [N] where that has one. */
  shape: number[];
  /** The shape as the client wrote it. */
  declared: readonly number[];
  /** How messages name it: `inputs[0]`. */
  field: string;
}

/**
 * Compares all inputs of a request with those of the model; data is not looked at.
 * @param fieldOf how messages name the input of an index.
 * @returns one entry for each declared input, in order, with equal first dimensions: the items.
 * @throws MillraceError `invalid_input` naming the field at fault; `too_many_items`.
 */
export function matchInputs(
  model: ModelDescription,
  declared: readonly DeclaredTensor[],
  fieldOf: (index: number) => string = (index) => `inputs[${index}]`,
): ModelInput[] {
  if (declared.length === 0) throw invalid('inputs', 'must not be empty');
  const seen = new Set<string>();
  const matched = declared.map(({ name, datatype, shape }, index) => {
    const field = fieldOf(index);
    const spec = model.inputs.find((input) => input.name === name);
    if (!spec) throw unknownName(field, name, model.name, model.inputs);
    if (seen.has(name)) throw invalid(`${field}.name`, `repeats ${quoted(name)}`);
    seen.add(name);
    requireDatatype(spec, datatype, field);
    return { spec, shape: requireShape(model, spec, shape, `${field}.shape`), declared: shape, field };
  });
  const counts = matched.map(({ shape }) => shape[0] ?? 0);
  if (counts.some((count) => count !== counts[0])) {
    throw invalid('inputs', `must all have the same first dimension, but have ${counts.join(', ')}`);
  }
  for (const { name, optional } of model.inputs) {
    if (!seen.has(name) && !optional) {
      throw invalid('inputs', `must have ${JSON.stringify(name)}, which model ${model.name} needs`);
    }
  }
  return matched;
}

/**
 * A tensor of bytes as they came: a view, nothing is copied. They must be just what the shape takes.
 * @param data row-major, little-endian; BOOL one byte an element, BYTES uint32 length + bytes.
 * @throws MillraceError `invalid_input` naming the input.
 */
export function tensorOfBytes(model: ModelDescription, input: ModelInput, data: Uint8Array): Tensor {
  const { spec, shape, field } = input;
  const tensor: Tensor = { name: spec.name, datatype: spec.datatype, shape, data };
  checkTensor(tensor, field);
  if (spec.datatype === 'BOOL') requireBooleans(data, field);
  if (model.task === 'text-embedding' && spec.datatype === 'BYTES') requireTexts(tensor, field);
  return tensor;
}

/**
 * The outputs that a client asks for by name; all of the model's where it names none.
 * @param fieldOf how messages name the output of an index.
 * @throws MillraceError `invalid_input` for an unknown or repeated name.
 */
export function selectOutputs(
  model: ModelDescription,
  names: readonly string[],
  fieldOf: (index: number) => string = (index) => `outputs[${index}]`,
): TensorSpec[] {
  if (names.length === 0) return model.outputs;
  const selected: TensorSpec[] = [];
  for (const [index, name] of names.entries()) {
    const spec = model.outputs.find((output) => output.name === name);
    if (!spec) throw unknownName(fieldOf(index), name, model.name, model.outputs);
    if (selected.includes(spec)) throw invalid(`${fieldOf(index)}.name`, `repeats ${quoted(name)}`);
    selected.push(spec);
  }
  return selected;
}

function requireDatatype(spec: TensorSpec, datatype: string, field: string): void {
  if (datatype === spec.datatype) return;
  const given = isDatatype(datatype) ? `is ${datatype}` : 'is no datatype';
  throw invalid(`${field}.datatype`, `${given}, but the model's ${spec.name} is ${spec.datatype}`);
}

/** The declared shape if it fits the model's; [N,1] stands for [N] where the model's input has one axis. */
function requireShape(
  model: ModelDescription,
  spec: TensorSpec,
  declared: readonly number[],
  field: string,
): number[] {
  if (declared.length > MAX_AXES) throw invalid(field, `must have at most ${MAX_AXES} dimensions`);
  elementCount(declared, field);
  const column = spec.shape.length === 1 && declared.length === 2 && declared[1] === 1;
  const shape = column ? declared.slice(0, 1) : [...declared];
  const fits =
    shape.length === spec.shape.length && spec.shape.every((size, axis) => size < 0 || size === shape[axis]);
  if (!fits) throw invalid(field, `is [${declared}], but the model's ${spec.name} has [${spec.shape}]`);
  const items = shape[0] ?? 0;
  if (items === 0) throw invalid(field, 'must have at least one item');
  requireItemCount(model, items, field);
  return shape;
}

function requireBooleans(data: Uint8Array, field: string): void {
  const at = data.findIndex((byte) => byte > 1);
  if (at >= 0) throw invalid(`${field}.data[${at}]`, `is the byte ${data[at]}, but BOOL is 0 or 1`);
}

function requireTexts(tensor: Tensor, field: string): void {
  for (const [index, element] of bytesElements(tensor).entries()) {
    const fault = element.byteLength === 0 ? 'must not be empty' : !isUtf8(element) && 'is not valid UTF-8';
    if (!fault) continue;
    const at = `${field}.data[${index}]`;
    throw new MillraceError('invalid_input', `${at} ${fault}.`, { field: at, index });
  }
}

function unknownName(
  field: string,
  name: string,
  model: string,
  specs: readonly TensorSpec[],
): MillraceError {
  const there = specs.map((spec) => JSON.stringify(spec.name)).join(', ');
  return invalid(`${field}.name`, `is ${quoted(name)}, but model ${model} has ${there}`);
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
