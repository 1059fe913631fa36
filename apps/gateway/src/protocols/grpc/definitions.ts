import { fileURLToPath } from 'node:url';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { LENGTH, WireReader } from './wire.js';

/** What the small requests of all methods ask for: they have the same fields, or none. */
export interface Asked {
  /** Field 1: a model, a service, a repository. */
  name: string;
  /** Field 2 where it is a text. */
  version: string;
  /** Field 2 where it is a flag. */
  ready: boolean;
}

/**
 * Reads a request that is not on the hot path. The library's reader would take a text that ends too soon.
 * @throws MillraceError `invalid_input`, `invalid_encoding`.
 */
export function decodeAsked(message: Buffer): Asked {
  const asked: Asked = { name: '', version: '', ready: false };
  const reader = new WireReader(message);
  while (reader.next()) {
    if (reader.field === 1) asked.name = reader.string('name');
    else if (reader.field !== 2) reader.skip();
    else if (reader.wire === LENGTH) asked.version = reader.string('version');
    else asked.ready = reader.bool();
  }
  return asked;
}

/** How one method's answers are written. */
export interface Codec {
  path: string;
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
      encode: (answer) => definition.responseSerialize(answer),
    };
  };
}
