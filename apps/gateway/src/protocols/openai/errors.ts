import type { MillraceError } from '@millrace/shared';
import type { DoorErrors } from '../../http/context.js';

/** OpenAI's error object: `code` is of our one table, `param` the field at fault. */
export const openaiErrors: DoorErrors = {
  name: 'openai',
  contentType: 'application/json',
  render: (error: MillraceError) => ({
    error: {
      message: error.message,
      type: typeOf(error.spec.status),
      param: error.details.field ?? null,
      code: error.code,
    },
  }),
};

function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  return status === 429 ? 'rate_limit_error' : 'invalid_request_error';
}
