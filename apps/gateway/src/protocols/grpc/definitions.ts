import { fileURLToPath } from 'node:url';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { MillraceError } from '@millrace/shared';

/** Both directions of one method's messages, for those that are not on the hot path. */
export interface Codec {
  path: string;
  /** @throws MillraceError `invalid_input`. */
  decode(message: Buffer): Record<string, unknown>;
  encode(answer: object): Buffer;
}

/** The methods of one service of a file in proto/. */
export function codecsOf(file: string, service: string): (method: string) => Codec {
  const path = fileURLToPath(new URL(`../../../proto/${file}`, import.meta.url));
  const methods = loadSync(path, { keepCase: true, longs: Number })[service] as ServiceDefinition;
  return (method) => {
    const definition = methods[method];
    if (!definition) throw new Error(`${file} has no method ${method}.`);
    return {
      path: definition.path,
      decode(message) {
        try {
          return definition.requestDeserialize(message) as Record<string, unknown>;
        } catch (cause) {
          const text = `The message is not one that ${method} takes.`;
          throw new MillraceError('invalid_input', text, { field: 'message' }, { cause });
        }
      },
      encode: (answer) => definition.responseSerialize(answer),
    };
  };
}
