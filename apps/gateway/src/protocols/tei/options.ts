import { MillraceError, type ModelDescription } from '@millrace/shared';
import type { RequestParameters } from '../../inference/request.js';
import { requireDimensions } from '../short-vectors.js';
import type { CuttingOptions, EmbedRequest } from './schema.js';

/** What becomes of an embedding on its way out. */
export interface Shaping {
  /** Numbers of it that are kept, from the first on. */
  dimensions: number;
  /** Scaled to length 1 in the gateway. */
  scale: boolean;
}

/**
 * What tells the worker whether to cut long texts.
 * @param within names the object that holds the options: `parameters.`.
 * @throws MillraceError `invalid_input` for what no model does here.
 */
export function cuttingParameters(
  model: ModelDescription,
  { truncate, truncation_direction: direction, prompt_name: prompt }: CuttingOptions,
  within = '',
): RequestParameters {
  requireNoPrompt(model, prompt, within);
  if (direction?.toLowerCase() === 'left' && truncate !== false) {
    throw refused(`${within}truncation_direction`, 'must be "right": texts are cut at their end alone');
  }
  return typeof truncate === 'boolean' ? { truncate } : {};
}

/** @throws MillraceError `invalid_input` for any prompt. */
export function requireNoPrompt(
  model: ModelDescription,
  prompt: string | null | undefined,
  within = '',
): void {
  if (prompt === null || prompt === undefined) return;
  throw refused(`${within}prompt_name`, `must be left out: model ${model.name} has no prompts`);
}

/** @throws MillraceError `invalid_input` where the model can't give such embeddings. */
export function shapingOf(
  model: ModelDescription,
  { normalize, dimensions }: Pick<EmbedRequest, 'normalize' | 'dimensions'>,
): Shaping {
  const whole = model.outputs[0]?.shape[1] ?? 0;
  const { normalized } = model.text ?? {};
  if (normalize === false && normalized) {
    throw refused('normalize', `must be true: model ${model.name} itself scales its embeddings to length 1`);
  }
  const kept = requireDimensions(model, dimensions) ?? whole;
  return { dimensions: kept, scale: normalize !== false && (!normalized || kept < whole) };
}

function refused(field: string, fault: string): MillraceError {
  return new MillraceError('invalid_input', `${field} ${fault}.`, { field });
}
