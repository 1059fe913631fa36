import { MillraceError, type ModelDescription, type Tensor, type TensorSpec } from '@millrace/shared';
import { shortened } from '../client-names.js';
import { requireItemCount, requireJsonOutputs } from '../limits.js';
import type { ParsedInputs } from '../new-request.js';
import { readParameters } from '../parameters.js';
import { readBy } from '../read-by.js';
import { type JsonPiece, readTensor, shapeOf } from '../read-tensor.js';
import { readTexts } from '../read-texts.js';
import { predictRequestSchema } from './schema.js';

type JsonObject = Record<string, unknown>;

/**
 * Reads the body of a predict call, as schema.ts has it. Any other field is refused, so that a misspelt one is
 * found.
 * @throws MillraceError `invalid_input` or `too_many_items`, naming the field.
 */
export function parsePredict(model: ModelDescription, body: unknown): ParsedInputs {
  const { inputs: given, waitMs, partial, priority, parameters } = readBy(predictRequestSchema, body);
  const values = listOfInputs(model, given);
  const inputs =
    model.task === 'text-embedding'
      ? [readTexts(model, values, (index) => fieldOf(given, index))]
      : readItems(model, values, (index) => fieldOf(given, index));
  return {
    inputs,
    itemCount: values.length,
    parameters: readParameters(parameters),
    ...(waitMs === undefined ? {} : { waitMs }),
    partial: partial ?? false,
    ...(priority === undefined ? {} : { priority }),
  };
}

function listOfInputs(model: ModelDescription, inputs: unknown): unknown[] {
  if (inputs === undefined || inputs === null) throw invalid('inputs', 'is missing');
  const values: unknown[] = Array.isArray(inputs) ? inputs : [inputs];
  if (values.length === 0) throw invalid('inputs', 'must not be empty');
  requireItemCount(model, values.length, 'inputs');
  requireJsonOutputs(model.outputs);
  return values;
}

/** An item of a tensor model is an object with one nested list per input, without the first axis. */
function readItems(
  model: ModelDescription,
  values: readonly unknown[],
  fieldOf: (index: number) => string,
): Tensor[] {
  const items = values.map((value, index) => requireItem(model, value, fieldOf(index), index));
  const tensors: Tensor[] = [];
  for (const spec of model.inputs) {
    const tensor = readColumn(spec, items, fieldOf);
    if (tensor) tensors.push(tensor);
  }
  if (tensors.length === 0) {
    throw invalid(fieldOf(0), `must have one of ${namesOf(model)}`, 0);
  }
  return tensors;
}

function requireItem(model: ModelDescription, value: unknown, field: string, index: number): JsonObject {
  if (!isObject(value)) throw invalid(field, `must be an object with inputs of ${namesOf(model)}`, index);
  for (const name of Object.keys(value)) {
    if (!model.inputs.some((spec) => spec.name === name)) {
      throw invalid(
        `${field}.${shortened(name)}`,
        `is no input of model ${model.name}; it has ${namesOf(model)}`,
        index,
      );
    }
  }
  return value;
}

/** One input of all items; undefined for an optional one that every item leaves out. */
function readColumn(
  spec: TensorSpec,
  items: readonly JsonObject[],
  fieldOf: (index: number) => string,
): Tensor | undefined {
  const first = items.findIndex((item) => Object.hasOwn(item, spec.name));
  if (first < 0 && spec.optional) return undefined;
  const missing = items.findIndex((item) => !Object.hasOwn(item, spec.name));
  if (missing >= 0) {
    const others = first < 0 ? 'is missing' : `is missing, but ${fieldOf(first)} has it`;
    throw invalid(`${fieldOf(missing)}.${spec.name}`, others, missing);
  }
  const firstField = `${fieldOf(0)}.${spec.name}`;
  const itemShape = shapeOf(items[0]?.[spec.name]);
  requireSignature(spec, itemShape, firstField);
  const pieces: JsonPiece[] = items.map((item, index) => ({
    value: item[spec.name],
    field: `${fieldOf(index)}.${spec.name}`,
    index,
    shapeFrom: index === 0 ? `model input ${spec.name}` : firstField,
  }));
  return readTensor(spec.name, spec.datatype, [items.length, ...itemShape], pieces, itemShape);
}

function requireSignature(spec: TensorSpec, itemShape: readonly number[], field: string): void {
  const expected = spec.shape.slice(1);
  const fits =
    expected.length === itemShape.length &&
    expected.every((size, axis) => size < 0 || size === itemShape[axis]);
  if (!fits)
    throw invalid(field, `has the shape [${itemShape}], but an item of the model has [${expected}]`, 0);
}

function fieldOf(inputs: unknown, index: number): string {
  return Array.isArray(inputs) ? `inputs[${index}]` : 'inputs';
}

function namesOf(model: ModelDescription): string {
  return model.inputs.map((spec) => JSON.stringify(spec.name)).join(', ');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(field: string, fault: string, index?: number): MillraceError {
  const details = index === undefined ? { field } : { field, index };
  return new MillraceError('invalid_input', `${field} ${fault}.`, details);
}
