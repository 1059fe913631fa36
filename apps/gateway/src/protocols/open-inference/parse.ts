import {
  elementCount,
  MillraceError,
  type ModelDescription,
  type Tensor,
  type TensorSpec,
} from '@millrace/shared';
import { parseStrictJson } from '../../http/strict-json.js';
import { type ModelInput, matchInputs, selectOutputs, tensorOfBytes } from '../model-tensors.js';
import type { ParsedInputs } from '../new-request.js';
import { readParameters } from '../parameters.js';
import { readBy } from '../read-by.js';
import { readTensor } from '../read-tensor.js';
import { readTexts } from '../read-texts.js';
import { type Scheduling, SEQUENCE_PARAMETERS, takeScheduling } from '../scheduling.js';
import { BinaryBody, JSON_LENGTH_HEADER } from './binary-body.js';
import { restoreIntegers } from './exact-integers.js';
import { readRaw } from './raw-body.js';
import { type InferRequestBody, inferRequestSchema } from './schema.js';

/** More inputs or outputs than any model has: their entries are not looked at. */
const MAX_TENSORS = 1024;

type InputEntry = InferRequestBody['inputs'][number];
type OutputEntry = NonNullable<InferRequestBody['outputs']>[number];

/** An output to answer with. */
export interface AskedOutput {
  name: string;
  /** As bytes behind the JSON, not in it. */
  binary: boolean;
}

export interface ParsedInfer extends ParsedInputs {
  /** The client's id, echoed and never used. */
  id?: string;
  /** In the order of the answer. */
  outputs: AskedOutput[];
}

/**
 * Reads an infer request: JSON, JSON with binary tensors behind it, or one tensor's bytes alone.
 * @param jsonLength length of the JSON in front of binary tensors; 0 where there is none; absent: JSON alone.
 * @throws MillraceError `invalid_input` naming the field, `too_many_items`, `unsupported`, or as
 * `parseStrictJson`.
 */
export function parseInfer(
  model: ModelDescription,
  body: Buffer,
  jsonLength: number | undefined,
  maxDepth: number,
): ParsedInfer {
  if (jsonLength === 0) {
    const outputs = model.outputs.map(({ name }) => ({ name, binary: true }));
    return { inputs: [readRaw(model, body)], itemCount: 1, parameters: {}, outputs };
  }
  const binary = new BinaryBody(body, jsonLength);
  const parsed = parseStrictJson(binary.json, maxDepth);
  requireFew(parsed);
  const request = readBy(inferRequestSchema, parsed);
  const { binaryOutput, scheduling } = readOptions(request.parameters);
  const outputs = readOutputs(model, request.outputs ?? [], binaryOutput);
  const matched = matchInputs(model, request.inputs);
  const inputs = matched.map((input, index) =>
    readInput(model, input, request.inputs[index], index, binary, jsonLength),
  );
  binary.requireEnd();
  return {
    ...(request.id === undefined ? {} : { id: request.id }),
    inputs,
    itemCount: matched[0]?.shape[0] ?? 0,
    outputs,
    ...scheduling,
  };
}

/** Before the schema looks at each entry, and finds fault with each. */
function requireFew(body: unknown): void {
  for (const name of ['inputs', 'outputs']) {
    const list = (body as Record<string, unknown> | null)?.[name];
    if (Array.isArray(list) && list.length > MAX_TENSORS)
      throw invalid(name, `must have at most ${MAX_TENSORS} entries`);
  }
}

interface Options {
  /** Whether outputs are answered in bytes where they say nothing themselves. */
  binaryOutput: boolean;
  scheduling: Scheduling;
}

function readOptions(value: unknown): Options {
  // Most requests have none, and taking some out of others is slow.
  if (value === undefined) return { binaryOutput: false, scheduling: { parameters: {} } };
  const { binary_data_output: binaryOutput = false, ...parameters } = readParameters(value);
  if (typeof binaryOutput !== 'boolean') {
    throw invalid('parameters.binary_data_output', 'must be true or false');
  }
  for (const name of SEQUENCE_PARAMETERS) refuse(parameters[name], `parameters.${name}`);
  return { binaryOutput, scheduling: takeScheduling(parameters) };
}

function readInput(
  model: ModelDescription,
  input: ModelInput,
  entry: InputEntry | undefined,
  index: number,
  binary: BinaryBody,
  jsonLength: number | undefined,
): Tensor {
  const { field } = input;
  const { data, parameters } = entry ?? {};
  refuse(parameters?.shared_memory_region, `${field}.parameters.shared_memory_region`);
  const bytes = parameters?.binary_data_size;
  if (bytes === undefined) return readJson(model, input, data, index, binary.json);
  if (data !== undefined) throw invalid(`${field}.data`, 'must be left out where binary_data_size is given');
  if (jsonLength === undefined) {
    throw invalid(`${field}.parameters.binary_data_size`, `needs the header ${JSON_LENGTH_HEADER}`);
  }
  return tensorOfBytes(model, input, binary.take(bytes, field));
}

function readJson(
  model: ModelDescription,
  input: ModelInput,
  data: unknown,
  index: number,
  text: Buffer,
): Tensor {
  const { spec, shape, declared, field } = input;
  if (!Array.isArray(data))
    throw invalid(`${field}.data`, data === undefined ? 'is missing' : 'must be a list');
  const count = elementCount(shape, `${field}.shape`);
  const flat = !Array.isArray(data[0]);
  // [N,1] and flat data of a text model say the same.
  if (model.task === 'text-embedding') {
    const texts = flat
      ? data
      : data.map((row: unknown) => (Array.isArray(row) && row.length === 1 ? row[0] : row));
    const nestedAsDeclared = flat || declared.length === 2;
    if (texts.length !== count || !nestedAsDeclared) throw misfit(field, declared, data.length);
    return readTexts(model, texts, (at) => `${field}.data[${at}]`);
  }
  if (flat && data.length !== count) throw misfit(field, shape, data.length);
  restoreIntegers(data, spec.datatype, text, ['inputs', index, 'data']);
  // [N,1] stands for [N], but nested data is nested as the declared shape says.
  const piece = { value: data, field: `${field}.data`, shapeFrom: `${field}.shape` };
  return readTensor(spec.name, spec.datatype, shape, [piece], flat ? [count] : declared, true);
}

/** The outputs asked for, all of the model's where none are: an empty list means all, as a missing one does. */
function readOutputs(
  model: ModelDescription,
  entries: readonly OutputEntry[],
  binaryOutput: boolean,
): AskedOutput[] {
  const specs = selectOutputs(
    model,
    entries.map(({ name }) => name),
  );
  return specs.map((spec, index) => {
    const parameters = entries[index]?.parameters;
    const field = `outputs[${index}].parameters`;
    refuse(parameters?.shared_memory_region, `${field}.shared_memory_region`);
    refuse(parameters?.classification, `${field}.classification`);
    const binary = parameters?.binary_data ?? binaryOutput;
    if (!binary) requireJsonOutput(spec);
    return { name: spec.name, binary };
  });
}

/** Asked before the work is done, not after. */
function requireJsonOutput({ name, datatype }: TensorSpec): void {
  if (datatype !== 'FP16' && datatype !== 'BF16') return;
  const field = `output ${name}`;
  throw invalid(
    field,
    `is ${datatype}, which has no form in JSON: ask for it with the parameter binary_data`,
  );
}

/** Extensions that are not here: left unread they would change what the answer means. */
function refuse(parameter: unknown, field: string): void {
  if (parameter === undefined) return;
  throw new MillraceError('unsupported', `${field} asks for what is not supported here.`, { field });
}

function misfit(field: string, shape: readonly number[], found: number): MillraceError {
  return invalid(
    `${field}.data`,
    `doesn't fit the shape [${shape}] that ${field}.shape says; it has ${found} entries`,
  );
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
