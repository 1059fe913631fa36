import { MillraceError } from '@millrace/shared';
import type { RequestParameters } from '../inference/request.js';

/**
 * Parameters as every door takes them: a flat object of strings, finite numbers and booleans.
 * @throws MillraceError `invalid_input` naming the parameter.
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
      throw new MillraceError('invalid_input', `${field}.${name} must be a string, number or boolean.`, {
        field: `${field}.${name}`,
      });
    }
    parameters[name] = parameter;
  }
  return parameters;
}
