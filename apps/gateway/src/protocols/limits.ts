import { MillraceError, type ModelDescription, type TensorSpec } from '@millrace/shared';
import { requireJsonForm } from './elements.js';

/** @throws MillraceError `too_many_items` when a request has more than its model takes at once. */
export function requireItemCount(model: ModelDescription, count: number, field: string): void {
  const { maxRequestItems } = model.limits;
  if (count <= maxRequestItems) return;
  throw new MillraceError(
    'too_many_items',
    `${field} has ${count} items; model ${model.name} takes at most ${maxRequestItems} in a request.`,
    { field },
  );
}

/**
 * Asked before the work is done, not after.
 * @throws MillraceError `invalid_input` when an output has no form in JSON.
 */
export function requireJsonOutputs(outputs: readonly TensorSpec[]): void {
  for (const output of outputs) requireJsonForm(output.datatype, `output ${output.name}`);
}

/** @throws MillraceError `invalid_input` unless the model makes embeddings of texts. */
export function requireTexts(model: ModelDescription): ModelDescription {
  if (model.task === 'text-embedding') return model;
  throw new MillraceError('invalid_input', `Model ${model.name} makes no embeddings of texts.`, {
    field: 'model',
  });
}
