import { MillraceError } from '@millrace/shared';
import { LENGTH, WireReader } from './wire.js';

/** More of anything in one message than a model could use: a small message must not become many objects. */
const MOST_ENTRIES = 1024;
const MOST_AXES = 32;

export type WireParameters = Record<string, string | number | boolean>;

/** A ModelInferRequest as it came; its bytes are views into the message. */
export interface InferMessage {
  modelName: string;
  modelVersion: string;
  id: string;
  parameters: WireParameters;
  inputs: InputMessage[];
  outputs: { name: string; parameters: WireParameters }[];
  raw: Uint8Array[];
}

export interface InputMessage {
  name: string;
  datatype: string;
  shape: number[];
  parameters: WireParameters;
  /** InferTensorContents, undecoded; more than one where a client cut it: they count as one. */
  contents: Uint8Array[];
}

/**
 * Decodes a ModelInferRequest. By hand, since it is the hot path: tensors stay views, and typed contents wait until
 * it is known what they must be. Unknown fields are passed over.
 * @throws MillraceError `invalid_input` or `invalid_encoding`.
 */
export function decodeInferRequest(message: Uint8Array): InferMessage {
  const infer: InferMessage = {
    modelName: '',
    modelVersion: '',
    id: '',
    parameters: {},
    inputs: [],
    outputs: [],
    raw: [],
  };
  const reader = new WireReader(message);
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        infer.modelName = reader.string('model_name');
        break;
      case 2:
        infer.modelVersion = reader.string('model_version');
        break;
      case 3:
        infer.id = reader.string('id');
        break;
      case 4:
        readParameter(reader.bytes(), infer.parameters, 'parameters');
        break;
      case 5:
        add(infer.inputs, decodeInput(reader.bytes(), `inputs[${infer.inputs.length}]`), 'inputs');
        break;
      case 6:
        add(infer.outputs, decodeOutput(reader.bytes(), `outputs[${infer.outputs.length}]`), 'outputs');
        break;
      case 7:
        add(infer.raw, reader.bytes(), 'raw_input_contents');
        break;
      default:
        reader.skip();
    }
  }
  return infer;
}

function decodeInput(message: Uint8Array, field: string): InputMessage {
  const input: InputMessage = { name: '', datatype: '', shape: [], parameters: {}, contents: [] };
  const reader = new WireReader(message);
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        input.name = reader.string(`${field}.name`);
        break;
      case 2:
        input.datatype = reader.string(`${field}.datatype`);
        break;
      case 3:
        readShape(reader, input.shape, `${field}.shape`);
        break;
      case 4:
        readParameter(reader.bytes(), input.parameters, `${field}.parameters`);
        break;
      case 5:
        add(input.contents, reader.bytes(), `${field}.contents`);
        break;
      default:
        reader.skip();
    }
  }
  return input;
}

function decodeOutput(message: Uint8Array, field: string): InferMessage['outputs'][number] {
  const output = { name: '', parameters: {} };
  const reader = new WireReader(message);
  while (reader.next()) {
    if (reader.field === 1) output.name = reader.string(`${field}.name`);
    else if (reader.field === 2) readParameter(reader.bytes(), output.parameters, `${field}.parameters`);
    else reader.skip();
  }
  return output;
}

/** Packed or one by one: readers must take both. */
function readShape(reader: WireReader, shape: number[], field: string): void {
  if (reader.wire === LENGTH) {
    const packed = new WireReader(reader.bytes());
    while (!packed.done) addAxis(shape, packed.packedInt64(), field);
  } else addAxis(shape, reader.int64(), field);
}

function addAxis(shape: number[], size: number, field: string): void {
  if (shape.length === MOST_AXES) throw invalid(field, `must have at most ${MOST_AXES} dimensions`);
  shape.push(size);
}

/** One entry of a map<string, InferParameter>. */
function readParameter(entry: Uint8Array, parameters: WireParameters, field: string): void {
  let name = '';
  let value: string | number | boolean | undefined;
  const reader = new WireReader(entry);
  while (reader.next()) {
    if (reader.field === 1) name = reader.string(field);
    else if (reader.field === 2) value = readChoice(reader.bytes(), `${field}.${name}`);
    else reader.skip();
  }
  if (value === undefined) throw invalid(`${field}.${name}`, 'has no value');
  // Assigning it would set the object's prototype.
  if (name === '__proto__') return;
  if (!Object.hasOwn(parameters, name) && Object.keys(parameters).length === MOST_ENTRIES) {
    throw invalid(field, `must have at most ${MOST_ENTRIES} entries`);
  }
  parameters[name] = value;
}

function readChoice(message: Uint8Array, field: string): string | number | boolean | undefined {
  let value: string | number | boolean | undefined;
  const reader = new WireReader(message);
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        value = reader.bool();
        break;
      case 2:
        value = exact(reader.int64(), field);
        break;
      case 3:
        value = reader.string(field);
        break;
      case 4:
        value = reader.double();
        break;
      case 5:
        value = exact(reader.uint64(), field);
        break;
      default:
        reader.skip();
    }
  }
  return value;
}

/** Parameters travel as JSON, where larger numbers lose digits. */
function exact(value: number, field: string): number {
  if (Number.isSafeInteger(value)) return value;
  throw invalid(field, 'must be between -(2^53-1) and 2^53-1');
}

function add<Entry>(list: Entry[], entry: Entry, field: string): void {
  if (list.length === MOST_ENTRIES) throw invalid(field, `must have at most ${MOST_ENTRIES} entries`);
  list.push(entry);
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
