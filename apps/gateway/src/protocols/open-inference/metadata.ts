import type { ModelDescription, TensorSpec } from '@millrace/shared';
import { VERSION } from '../version.js';

/** Triton's names of what is here beside the protocol itself; docs/open-inference.md says how much of each. */
const EXTENSIONS = ['binary_tensor_data', 'model_repository', 'schedule_policy', 'statistics'];

export function serverMetadata(): object {
  return { name: 'millrace', version: VERSION, extensions: EXTENSIONS };
}

/** @param versions all versions of the model, or none where one was asked for by name. */
export function modelMetadata(model: ModelDescription, versions: readonly string[]): object {
  return {
    name: model.name,
    versions,
    platform: model.platform,
    inputs: model.inputs.map(tensorMetadata),
    outputs: model.outputs.map(tensorMetadata),
  };
}

function tensorMetadata({ name, datatype, shape }: TensorSpec): object {
  return { name, datatype, shape };
}
