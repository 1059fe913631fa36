import type { DoorApi } from '../protocols/api-description.js';
import { ANSWER_HEADERS, DESCRIPTION, KEYS_DESCRIPTION, TITLE } from './common.js';
import { ErrorBook } from './errors.js';
import { headerObject } from './headers.js';
import type { JsonObject } from './json.js';
import { OperationWriter } from './operations.js';
import { pathsOf } from './paths.js';
import { SchemaBook } from './schemas.js';

export interface DocumentOptions {
  version: string;
  /** Whether API keys are asked for. */
  keyed: boolean;
}

/** The OpenAPI 3.1 document of these doors. It is the same for the same doors, whatever models are served. */
export function openApiDocument(doors: readonly DoorApi[], { version, keyed }: DocumentOptions): JsonObject {
  const schemas = new SchemaBook();
  const errors = new ErrorBook(schemas);
  const writer = new OperationWriter(schemas, errors, keyed);
  const paths: Record<string, JsonObject> = {};
  for (const door of doors) {
    for (const operation of door.operations) {
      for (const at of pathsOf(operation.path)) {
        const item = paths[at.path] ?? {};
        paths[at.path] = item;
        item[operation.method] = writer.write(door, operation, at);
      }
    }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: TITLE,
      version,
      description: keyed ? DESCRIPTION + KEYS_DESCRIPTION : DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Map(doors.map(({ title, description }) => [title, { name: title, description }])).values()],
    paths,
    components: {
      schemas: schemas.components(),
      responses: errors.components(),
      headers: Object.fromEntries(
        ANSWER_HEADERS.map(({ name, ...header }) => [name, headerObject(header)]),
      ) as JsonObject,
      ...(keyed
        ? {
            securitySchemes: {
              bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' },
              apiKey: {
                type: 'apiKey',
                in: 'header',
                name: 'X-API-Key',
                description: 'The same in a header of its own.',
              },
            },
          }
        : {}),
    },
  };
}
