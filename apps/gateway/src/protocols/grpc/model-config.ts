import type { Datatype, ModelDescription, TensorSpec } from '@millrace/shared';

/**
 * What a model here has of Triton's model configuration. Items are a batch there: their axis is counted by
 * `max_batch_size` and left out of the shapes.
 */
export function modelConfig({ name, platform, limits, inputs, outputs }: ModelDescription): object {
  return {
    name,
    platform,
    max_batch_size: limits.maxRequestItems,
    input: inputs.map((spec) => ({ ...tensorConfig(spec), optional: spec.optional ?? false })),
    output: outputs.map(tensorConfig),
  };
}

function tensorConfig({ name, datatype, shape }: TensorSpec) {
  // A shape without any axes but the items' is one value an item.
  const dims = shape.length > 1 ? shape.slice(1) : [1];
  return { name, data_type: typeName(datatype), dims };
}

function typeName(datatype: Datatype): string {
  return `TYPE_${datatype === 'BYTES' ? 'STRING' : datatype}`;
}
