import type { MillraceError } from '@millrace/shared';
import type { DoorErrors } from '../../http/context.js';

/** The Open Inference Protocol's errors are one sentence; it begins with the field at fault. */
export const openInferenceErrors: DoorErrors = {
  name: 'open-inference',
  contentType: 'application/json',
  render: (error: MillraceError) => ({ error: error.message }),
};
