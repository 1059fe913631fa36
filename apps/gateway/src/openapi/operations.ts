import type { ApiContent, ApiOperation, ApiParameter, DoorApi } from '../protocols/api-description.js';
import { BYTES } from '../protocols/api-description.js';
import {
  COMMON_ERRORS,
  INFER_ERRORS,
  INFER_PARAMETERS,
  KEPT,
  KEY_ERRORS,
  PATH_PARAMETERS,
  REPLAYED,
} from './common.js';
import type { ErrorBook } from './errors.js';
import { headersOf } from './headers.js';
import type { JsonObject } from './json.js';
import { type ApiPath, capitalized } from './paths.js';
import { inlineSchema, type SchemaBook } from './schemas.js';

/** Writes the operations of the document; their schemas and errors go into the books. */
export class OperationWriter {
  readonly #schemas: SchemaBook;
  readonly #errors: ErrorBook;
  readonly #keyed: boolean;

  constructor(schemas: SchemaBook, errors: ErrorBook, keyed: boolean) {
    this.#schemas = schemas;
    this.#errors = errors;
    this.#keyed = keyed;
  }

  write(door: DoorApi, operation: ApiOperation, at: ApiPath): JsonObject {
    const { id, summary, description, request, infers = false, open = false } = operation;
    const parameters = [
      ...at.parameters.map(pathParameter),
      ...(operation.parameters ?? []).map(parameterObject),
      ...(infers ? INFER_PARAMETERS : []).map(parameterObject),
    ];
    const needsKey = this.#keyed && !open;
    return {
      operationId: id + at.suffix,
      tags: [door.title],
      summary: at.suffix === '' ? summary : `${summary} (a ${at.suffix.toLowerCase()} of your choice)`,
      ...(description === undefined ? {} : { description }),
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(request === undefined
        ? {}
        : {
            requestBody: {
              ...(request.description === undefined ? {} : { description: request.description }),
              required: request.optional !== true,
              content: this.#contents(request.contents, `${capitalized(id)}Request`),
            },
          }),
      responses: {
        ...this.#responses(operation),
        ...this.#errors.refs(door, [
          ...COMMON_ERRORS,
          ...(needsKey ? KEY_ERRORS : []),
          ...(at.parameters.length > 0 ? (['invalid_input'] as const) : []),
          ...(infers ? INFER_ERRORS : []),
          ...(operation.errors ?? []),
        ]),
      },
      // Nothing where no keys are asked for: then no scheme is described either.
      ...(this.#keyed ? { security: open ? [] : [{ bearer: [] }, { apiKey: [] }] } : {}),
    };
  }

  #responses({ id, responses, infers = false }: ApiOperation): JsonObject {
    const all = infers ? { ...responses, 202: KEPT } : responses;
    const written = Object.entries(all).map(([status, { description, contents, headers = [] }]) => [
      status,
      {
        description,
        headers: headersOf(infers ? [REPLAYED, ...headers] : headers),
        ...(contents.length > 0 ? { content: this.#contents(contents, `${capitalized(id)}${status}`) } : {}),
      },
    ]);
    return Object.fromEntries(written) as JsonObject;
  }

  #contents(contents: readonly ApiContent[], name: string): JsonObject {
    const written = contents.map(({ contentType, schema, examples }, index) => [
      contentType,
      {
        schema:
          schema === BYTES ? {} : this.#schemas.ref(schema, index === 0 ? name : `${name}Form${index + 1}`),
        ...(examples === undefined ? {} : { examples }),
      },
    ]);
    return Object.fromEntries(written) as JsonObject;
  }
}

function pathParameter(name: string): JsonObject {
  const known = PATH_PARAMETERS[name];
  if (!known) throw new Error(`The path parameter ${name} is not described.`);
  const { schema, ...rest } = known;
  return { name, in: 'path', required: true, ...rest, schema: inlineSchema(schema) };
}

function parameterObject({ schema, ...rest }: ApiParameter): JsonObject {
  return { ...rest, schema: inlineSchema(schema) };
}
