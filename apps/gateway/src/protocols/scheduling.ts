import { MillraceError, type PriorityClass } from '@millrace/shared';
import type { RequestParameters } from '../inference/request.js';

/** Triton's numbers of priorities, the highest first; from the last on all are one. */
const CLASSES: readonly PriorityClass[] = ['interactive', 'normal', 'bulk'];

/** Parameters of Triton's stateful models: there are none here, and unheard they would change what an answer means. */
export const SEQUENCE_PARAMETERS = ['sequence_id', 'sequence_start', 'sequence_end'] as const;

export interface Scheduling {
  /** The other parameters, for the model. */
  parameters: RequestParameters;
  waitMs?: number;
  priority?: PriorityClass;
}

/**
 * Takes out the parameters of Triton's schedule policy extension: `priority` (1 is the highest, 0 leaves it to
 * the request's headers) and `timeout` (microseconds; 0 is the default).
 * @throws MillraceError `invalid_input` naming the parameter.
 */
export function takeScheduling(all: RequestParameters, field = 'parameters'): Scheduling {
  const { priority, timeout, ...parameters } = all;
  const level = whole(priority, `${field}.priority`) ?? 0;
  const micros = whole(timeout, `${field}.timeout`) ?? 0;
  return {
    parameters,
    ...(micros === 0 ? {} : { waitMs: micros / 1000 }),
    ...(level === 0 ? {} : { priority: CLASSES[Math.min(level, CLASSES.length) - 1] ?? 'interactive' }),
  };
}

function whole(value: RequestParameters[string] | undefined, field: string): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)) {
    return value as number | undefined;
  }
  throw new MillraceError('invalid_input', `${field} must be a whole number >= 0.`, { field });
}
