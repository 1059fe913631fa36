import { z } from 'zod';
import type { JsonObject } from './json.js';

const COMPONENTS = '#/components/schemas/';
/** Where zod puts what has a name of its own and is only used inside other schemas. */
const SHARED = '__shared';

/** The schemas of the document: each once among its components, made from the very zod schema that is used. */
export class SchemaBook {
  readonly #registry = z.registry<{ id: string }>();
  readonly #names = new Map<z.ZodType, string>();

  /**
   * A reference to a schema, which becomes a component.
   * @param fallback its name there where it has no `id` of its own.
   */
  ref(schema: z.ZodType, fallback: string): JsonObject {
    let name = this.#names.get(schema);
    if (name === undefined) {
      name = z.globalRegistry.get(schema)?.id ?? fallback;
      this.#names.set(schema, name);
      this.#registry.add(schema, { id: name });
    }
    return { $ref: COMPONENTS + name };
  }

  /** All that were referred to, by name. */
  components(): JsonObject {
    const { schemas } = z.toJSONSchema(this.#registry, {
      io: 'input',
      unrepresentable: 'any',
      uri: (id) => COMPONENTS + id,
    });
    const { [SHARED]: shared, ...named } = JSON.parse(
      JSON.stringify(schemas).replaceAll(`${COMPONENTS + SHARED}#/$defs/`, COMPONENTS),
    ) as Record<string, JsonObject>;
    const all = { ...named, ...(shared?.$defs as Record<string, JsonObject> | undefined) };
    const sorted = Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([name, schema]) => [name, withoutMarks(schema)]));
  }
}

/** A schema that is small and used in one place. */
export function inlineSchema(schema: z.ZodType): JsonObject {
  return withoutMarks(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonObject);
}

/** Inside an OpenAPI document the dialect is known, and its place is its name. */
function withoutMarks({ $schema: _, $id: __, id: ___, ...schema }: JsonObject): JsonObject {
  return separateTypes(schema) as JsonObject;
}

/** Several types are rightly written as a list of them; some tools that read OpenAPI take one alone. */
function separateTypes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(separateTypes);
  if (typeof schema !== 'object' || schema === null) return schema;
  const written = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, separateTypes(value)]),
  ) as JsonObject;
  const { type, ...rest } = written;
  if (!Array.isArray(type)) return written;
  return { ...rest, anyOf: type.map((each: unknown) => ({ type: each })) };
}
