import type { ApiHeader } from '../protocols/api-description.js';
import { ANSWER_HEADERS } from './common.js';
import type { JsonObject } from './json.js';
import { inlineSchema } from './schemas.js';

/** Headers of an answer: its own, and those that every one has. */
export function headersOf(own: readonly ApiHeader[]): JsonObject {
  return {
    ...Object.fromEntries(ANSWER_HEADERS.map(({ name }) => [name, { $ref: `#/components/headers/${name}` }])),
    ...Object.fromEntries(own.map(({ name, ...header }) => [name, headerObject(header)])),
  };
}

export function headerObject({ description, schema }: Omit<ApiHeader, 'name'>): JsonObject {
  return { description, schema: inlineSchema(schema) };
}
