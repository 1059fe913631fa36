import { elementCount, MillraceError, type ModelDescription, type Tensor } from '@millrace/shared';
import { type ModelInput, matchInputs, selectOutputs, tensorOfBytes } from '../model-tensors.js';
import type { ParsedInputs } from '../new-request.js';
import { readParameters } from '../parameters.js';
import { SEQUENCE_PARAMETERS, takeScheduling } from '../scheduling.js';
import { readContents } from './contents.js';
import type { InferMessage, InputMessage } from './infer-request.js';
import type { AskedOfAnswer } from './infer-response.js';

export interface ParsedCall extends ParsedInputs {
  asked: AskedOfAnswer;
}

/** Triton's own: asks to be told which answer is the last one to a request. */
const FINAL_PARAMETER = 'triton_enable_empty_final_response';
/** What a client of Triton may ask for in parameters that would change what an answer means. */
const REFUSED = {
  parameters: SEQUENCE_PARAMETERS,
  inputs: ['shared_memory_region'],
  outputs: ['shared_memory_region', 'classification'],
} as const;

/**
 * Compares a ModelInferRequest with the model. Data is all raw or all typed contents.
 * @throws MillraceError `invalid_input`, `too_many_items`, `unsupported`.
 */
export function parseInferMessage(model: ModelDescription, message: InferMessage): ParsedCall {
  for (const [index, { parameters }] of message.inputs.entries()) {
    refuse(parameters, REFUSED.inputs, `inputs[${index}].parameters`);
  }
  for (const [index, { parameters }] of message.outputs.entries()) {
    refuse(parameters, REFUSED.outputs, `outputs[${index}].parameters`);
  }
  const outputs = selectOutputs(
    model,
    message.outputs.map(({ name }) => name),
  ).map(({ name }) => name);
  const inputs = readInputs(model, message);
  const asked = { id: message.id, outputs, sayFinal: false };
  const parsed = { inputs, itemCount: inputs[0]?.shape[0] ?? 0, parameters: {}, asked };
  // Most requests have none; what reads them costs as much as all the rest.
  return Object.keys(message.parameters).length === 0 ? parsed : withParameters(parsed, message.parameters);
}

function withParameters(parsed: ParsedCall, given: InferMessage['parameters']): ParsedCall {
  const { [FINAL_PARAMETER]: sayFinal = false, ...all } = readParameters(given);
  if (typeof sayFinal !== 'boolean') throw invalid(`parameters.${FINAL_PARAMETER}`, 'must be true or false');
  refuse(all, REFUSED.parameters, 'parameters');
  return { ...parsed, ...takeScheduling(all), asked: { ...parsed.asked, sayFinal } };
}

function readInputs(model: ModelDescription, { inputs, raw }: InferMessage): Tensor[] {
  const matched = matchInputs(model, inputs);
  if (raw.length > 0 && raw.length !== inputs.length) {
    throw invalid('raw_input_contents', `has ${raw.length} entries, but there are ${inputs.length} inputs`);
  }
  return matched.map((input, index) => {
    const message = inputs[index] as InputMessage;
    return tensorOfBytes(model, input, raw.length > 0 ? rawOf(raw, message, index) : typed(input, message));
  });
}

function rawOf(raw: readonly Uint8Array[], { contents }: InputMessage, index: number): Uint8Array {
  // Clients that build messages by hand leave an empty one behind.
  if (contents.some((each) => each.byteLength > 0)) {
    throw invalid(`inputs[${index}].contents`, 'must be left out where raw_input_contents is given');
  }
  return raw[index] ?? new Uint8Array();
}

function typed({ spec, shape, field }: ModelInput, { contents }: InputMessage): Uint8Array {
  const count = elementCount(shape, `${field}.shape`);
  if (contents.length === 0 && count > 0) {
    throw invalid(field, 'has no data: there must be raw_input_contents, or contents in every input');
  }
  return readContents(contents, spec.datatype, count, `${field}.contents`);
}

function refuse(parameters: object, names: readonly string[], field: string): void {
  for (const name of names) {
    if (!Object.hasOwn(parameters, name)) continue;
    throw new MillraceError('unsupported', `${field}.${name} asks for what is not supported here.`, {
      field: `${field}.${name}`,
    });
  }
}

function invalid(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
