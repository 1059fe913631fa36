import { type ErrorCode, MillraceError } from '@millrace/shared';
import type { DoorApi } from '../protocols/api-description.js';
import { ERROR_HEADERS } from './common.js';
import { headerObject } from './headers.js';
import type { JsonObject } from './json.js';
import type { SchemaBook } from './schemas.js';

const RESPONSES = '#/components/responses/';
/** Stands for the id of a request in examples. */
const EXAMPLE_ID = 'cee46843-da1c-479c-9949-22175c97fd3e';

/** The error responses of the document: operations that can meet the same errors share one. */
export class ErrorBook {
  readonly #responses = new Map<string, JsonObject>();
  readonly #schemas: SchemaBook;

  constructor(schemas: SchemaBook) {
    this.#schemas = schemas;
  }

  /** References by status, for errors that an operation of a door can answer with. */
  refs(door: DoorApi, errors: Iterable<ErrorCode | MillraceError>): JsonObject {
    const byStatus = new Map<number, MillraceError[]>();
    for (const each of new Set(errors)) {
      const error = typeof each === 'string' ? new MillraceError(each) : each;
      const status = door.errors.statusOf?.(error) ?? error.spec.status;
      byStatus.set(status, [...(byStatus.get(status) ?? []), error]);
    }
    const sorted = [...byStatus].sort(([a], [b]) => a - b);
    return Object.fromEntries(
      sorted.map(([status, ofStatus]) => [status, { $ref: this.#ref(door, status, ofStatus) }]),
    );
  }

  components(): JsonObject {
    return Object.fromEntries(this.#responses);
  }

  #ref(door: DoorApi, status: number, errors: readonly MillraceError[]): string {
    const response = this.#response(door, status, errors);
    const text = JSON.stringify(response);
    const base = `${door.errors.name}-${status}`;
    for (let n = 1; ; n++) {
      const name = n === 1 ? base : `${base}-${n}`;
      const there = this.#responses.get(name);
      if (there === undefined) this.#responses.set(name, response);
      else if (JSON.stringify(there) !== text) continue;
      return RESPONSES + name;
    }
  }

  #response(door: DoorApi, status: number, errors: readonly MillraceError[]): JsonObject {
    const examples = errors.map((error) => {
      const rendered = JSON.stringify(door.errors.render(error, EXAMPLE_ID));
      return [error.code, { summary: error.code, value: JSON.parse(rendered) as unknown }];
    });
    const header = ERROR_HEADERS[status];
    return {
      description: errors.map(({ code, message }) => `- \`${code}\`: ${message}`).join('\n'),
      ...(header ? { headers: { [header.name]: headerObject(header) } } : {}),
      content: {
        [door.errors.contentType]: {
          schema: this.#schemas.ref(door.errorSchema, `${door.errors.name}-error`),
          examples: Object.fromEntries(examples) as JsonObject,
        },
      },
    };
  }
}
