import { MillraceError } from '@millrace/shared';
import { z } from 'zod';
import type { RequestParameters } from '../inference/request.js';
import { shortened } from './client-names.js';

/** Parameters travel inside every job of their request, and jobs are kept small. */
const MAX_BYTES = 4096;

/** Parameters in a door's body, described here and read by {@link readParameters}. */
export const parametersSchema = z
  .unknown()
  .optional()
  .meta({
    type: 'object',
    additionalProperties: { type: ['string', 'number', 'boolean'] },
    description: `Given to the model as they are, ${MAX_BYTES} bytes of JSON at most.`,
  });

/**
 * Parameters as every door takes them: a flat object of strings, finite numbers and booleans.
 * @throws MillraceError `invalid_input` naming the parameter, or when they are too large.
 */
export function readParameters(value: unknown, field = 'parameters'): RequestParameters {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MillraceError('invalid_input', `${field} must be an object.`, { field });
  }
  const parameters: RequestParameters = {};
  for (const [name, parameter] of Object.entries(value)) {
    // Assigning it would set the object's prototype.
    if (name === '__proto__') continue;
    const plain =
      typeof parameter === 'boolean' ||
      (typeof parameter === 'number' && Number.isFinite(parameter)) ||
      (typeof parameter === 'string' && parameter.isWellFormed());
    if (!plain) {
      const at = `${field}.${shortened(name)}`;
      throw new MillraceError('invalid_input', `${at} must be a string, number or boolean.`, { field: at });
    }
    parameters[name] = parameter;
  }
  if (Buffer.byteLength(JSON.stringify(parameters)) > MAX_BYTES) {
    throw new MillraceError('invalid_input', `${field} must not be larger than ${MAX_BYTES} bytes.`, {
      field,
    });
  }
  return parameters;
}
