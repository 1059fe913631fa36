import { ERRORS, type MillraceError } from '@millrace/shared';
import type { DoorErrors } from '../../http/context.js';

/** The native door's errors: problem details (RFC 9457) with our code, the field and the items at fault. */
export const nativeErrors: DoorErrors = {
  name: 'native',
  contentType: 'application/problem+json',
  render(error: MillraceError, requestId: string) {
    const { field, index, items } = error.details;
    return {
      type: `urn:millrace:error:${error.code}`,
      title: ERRORS[error.code].text,
      status: error.spec.status,
      detail: error.message,
      code: error.code,
      // JSON.stringify leaves out what is undefined.
      field,
      index,
      errors: items,
      requestId,
    };
  },
};
