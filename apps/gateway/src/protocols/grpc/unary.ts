import { MillraceError } from '@millrace/shared';
import type { Call, Method } from './call.js';
import { type Asked, type Codec, decodeAsked } from './definitions.js';

/** A method that takes one message and answers with one. */
export function unary(
  method: Omit<Method, 'open' | 'streams'>,
  run: (call: Call, message: Buffer) => Buffer | Promise<Buffer>,
): Method {
  return {
    ...method,
    open(call) {
      let taken = false;
      return {
        // Not waiting for the half-close, which tells nothing; no second message is read.
        async message(message) {
          taken = true;
          const answer = await run(call, message);
          call.send(answer);
          call.finish();
        },
        halfClose() {
          if (!taken)
            call.fail(new MillraceError('invalid_input', 'The message is missing.', { field: 'message' }));
        },
      };
    },
  };
}

/** The same with small messages, the answer's written by the library. */
export function plain(
  codec: Codec,
  method: Omit<Method, 'open' | 'streams'>,
  run: (request: Asked) => object,
): [string, Method] {
  return [codec.path, unary(method, (_call, message) => codec.encode(run(decodeAsked(message))))];
}
