import {
  elementCount,
  isDatatype,
  MillraceError,
  type ModelDescription,
  type Tensor,
  type TensorSpec,
} from '@millrace/shared';
import { quoted } from '../client-names.js';
import { requireItemCount, requireJsonOutputs } from '../limits.js';
import type { ParsedInputs } from '../new-request.js';
import { readParameters } from '../parameters.js';
import { readTensor } from '../read-tensor.js';
import { readTexts } from '../read-texts.js';

type JsonObject = Record<string, unknown>;

const MAX_AXES = 32;

export interface ParsedInfer extends ParsedInputs {
  /** The client's id, echoed and never used. */
  id?: string;
  /** Names of the outputs to answer with, in order. */
  outputs: string[];
}

/**
 * Reads an infer request with JSON tensors. Shapes are compared with the data and with the model: a peer that
 * trusts a declared shape hands one client's answer to another.
 * @throws MillraceError `invalid_input`, `too_many_items`, or `unsupported` for the binary extension.
 */
export function parseInfer(model: ModelDescription, body: unknown): ParsedInfer {
  if (!isObject(body)) throw invalid('body', 'must be an object with "inputs"');
  const { id } = body;
  if (id !== undefined && typeof id !== 'string') throw invalid('id', 'must be a string');
  const parameters = readParameters(body.parameters);
  refuseBinary(parameters, 'binary_data_output', 'parameters');
  const inputs = readInputs(model, requireList(body.inputs, 'inputs'));
  const itemCount = inputs[0]?.shape[0] ?? 0;
  return {
    ...(id === undefined ? {} : { id }),
    inputs,
    itemCount,
    parameters,
    outputs: readOutputs(model, body.outputs),
  };
}

function readInputs(model: ModelDescription, entries: readonly unknown[]): Tensor[] {
  const tensors = new Map<string, Tensor>();
  for (const [index, entry] of entries.entries()) {
    const field = `inputs[${index}]`;
    const { name, object } = requireEntry(entry, field);
    const spec = model.inputs.find((input) => input.name === name);
    if (!spec) throw unknownName(field, name, model.name, model.inputs);
    if (tensors.has(name)) throw invalid(`${field}.name`, `repeats ${quoted(name)}`);
    tensors.set(name, readInput(model, spec, object, field));
  }
  const counts = [...tensors.values()].map((tensor) => tensor.shape[0] ?? 0);
  if (counts.some((count) => count !== counts[0])) {
    throw invalid('inputs', `must all have the same first dimension, but have ${counts.join(', ')}`);
  }
  for (const spec of model.inputs) {
    if (!tensors.has(spec.name) && !spec.optional) {
      throw invalid('inputs', `must have ${JSON.stringify(spec.name)}, which model ${model.name} needs`);
    }
  }
  return [...tensors.values()];
}

function readInput(model: ModelDescription, spec: TensorSpec, entry: JsonObject, field: string): Tensor {
  refuseBinary(readParameters(entry.parameters, `${field}.parameters`), 'binary_data_size', field);
  requireDatatype(spec, entry.datatype, field);
  const shape = requireShape(spec, entry.shape, field);
  const items = shape[0] ?? 0;
  if (items === 0) throw invalid(`${field}.shape`, 'must have at least one item');
  requireItemCount(model, items, `${field}.shape`);
  const { data } = entry;
  if (!Array.isArray(data))
    throw invalid(`${field}.data`, data === undefined ? 'is missing' : 'must be a list');
  const count = elementCount(shape, `${field}.shape`);
  const flat = !Array.isArray(data[0]);
  const declared = entry.shape as number[];
  // [N,1] and flat data of a text model say the same.
  if (model.task === 'text-embedding') {
    const texts = flat
      ? data
      : data.map((row: unknown) => (Array.isArray(row) && row.length === 1 ? row[0] : row));
    const nestedAsDeclared = flat || declared.length === 2;
    if (texts.length !== count || !nestedAsDeclared) throw misfit(field, declared, data.length);
    return readTexts(model, texts, (index) => `${field}.data[${index}]`);
  }
  if (flat && data.length !== count) throw misfit(field, shape, data.length);
  // [N,1] stands for [N], but nested data is nested as the declared shape says.
  const piece = { value: data, field: `${field}.data`, shapeFrom: `${field}.shape` };
  return readTensor(spec.name, spec.datatype, shape, [piece], flat ? [count] : declared);
}

function requireDatatype(spec: TensorSpec, datatype: unknown, field: string): void {
  if (datatype === spec.datatype) return;
  const given = isDatatype(datatype) ? `is ${datatype}` : 'is no datatype';
  throw invalid(`${field}.datatype`, `${given}, but the model's ${spec.name} is ${spec.datatype}`);
}

/** The declared shape if it fits the model's; [N,1] stands for [N] where the model's input has one axis. */
function requireShape(spec: TensorSpec, value: unknown, field: string): number[] {
  const name = `${field}.shape`;
  if (!Array.isArray(value)) throw invalid(name, value === undefined ? 'is missing' : 'must be a list');
  const declared = value as number[];
  if (declared.length > MAX_AXES) throw invalid(name, `must have at most ${MAX_AXES} dimensions`);
  elementCount(declared, name);
  const shape =
    spec.shape.length === 1 && declared.length === 2 && declared[1] === 1 ? declared.slice(0, 1) : declared;
  const fits =
    shape.length === spec.shape.length && spec.shape.every((size, axis) => size < 0 || size === shape[axis]);
  if (!fits) throw invalid(name, `is [${declared}], but the model's ${spec.name} has [${spec.shape}]`);
  return shape;
}

/** The names of the outputs asked for; all of the model's where none are. */
function readOutputs(model: ModelDescription, value: unknown): string[] {
  const names: string[] = [];
  // An empty list means all, as a missing one does.
  const entries = value === undefined ? [] : requireList(value, 'outputs', 0);
  for (const [index, entry] of entries.entries()) {
    const field = `outputs[${index}]`;
    const { name, object } = requireEntry(entry, field);
    refuseBinary(readParameters(object.parameters, `${field}.parameters`), 'binary_data', field);
    if (!model.outputs.some((output) => output.name === name)) {
      throw unknownName(field, name, model.name, model.outputs);
    }
    if (names.includes(name)) throw invalid(`${field}.name`, `repeats ${quoted(name)}`);
    names.push(name);
  }
  const asked = names.length > 0 ? names : model.outputs.map((output) => output.name);
  requireJsonOutputs(model.outputs.filter((output) => asked.includes(output.name)));
  return asked;
}

function requireEntry(entry: unknown, field: string): { name: string; object: JsonObject } {
  if (!isObject(entry)) throw invalid(field, 'must be an object');
  const { name } = entry;
  if (typeof name !== 'string')
    throw invalid(`${field}.name`, name === undefined ? 'is missing' : 'must be a string');
  return { name, object: entry };
}

function requireList(value: unknown, field: string, atLeast = 1): unknown[] {
  if (value === undefined || value === null) throw invalid(field, 'is missing');
  if (!Array.isArray(value)) throw invalid(field, 'must be a list');
  if (value.length < atLeast) throw invalid(field, 'must not be empty');
  return value;
}

/** The binary tensor extension asked for inside JSON. */
function refuseBinary(parameters: Record<string, unknown>, name: string, field: string): void {
  if (parameters[name] === undefined || parameters[name] === false) return;
  throw new MillraceError('unsupported', `${field} asks for ${name}: binary tensors are not supported yet.`, {
    field,
  });
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

function misfit(field: string, shape: readonly number[], found: number): MillraceError {
  return invalid(
    `${field}.data`,
    `doesn't fit the shape [${shape}] that ${field}.shape says; it has ${found} entries`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
