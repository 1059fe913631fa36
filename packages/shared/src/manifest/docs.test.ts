import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { z } from 'zod';
import { manifestSchema } from './schema.js';

const DOCS = join(import.meta.dirname, '../../../../docs/models.md');

interface Schema {
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  default?: unknown;
}

/** Every field that holds a value, `files.NAME.bytes`, with its default as the page writes it. */
function fieldsOf(schema: Schema, path = '', requirement = 'required'): [string, string][] {
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return variants.flatMap((variant) => fieldsOf(variant, path, requirement));
  if (schema.properties) {
    const { properties, required = [] } = schema;
    return Object.entries(properties).flatMap(([name, field]) =>
      fieldsOf(field, path ? `${path}.${name}` : name, required.includes(name) ? 'required' : 'none'),
    );
  }
  if (typeof schema.additionalProperties === 'object') {
    return fieldsOf(schema.additionalProperties, `${path}.NAME`);
  }
  if (schema.items?.properties || schema.items?.anyOf) return fieldsOf(schema.items, `${path}[]`);
  if (schema.default === undefined) return [[path, requirement]];
  const text = typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default);
  return [[path, `\`${text}\``]];
}

describe('docs/models.md', () => {
  it('lists every field of the manifest with its default, and no other', async () => {
    const schema = z.toJSONSchema(manifestSchema, { io: 'input' }) as Schema;
    const page = await readFile(DOCS, 'utf8');
    const listed = [...page.matchAll(/^\| `([^`]+)` \| (.+?) \| .+ \|$/gm)].map(([, field, standard]) => [
      field,
      standard,
    ]);
    expect(listed.toSorted()).to.deep.equal([...new Map(fieldsOf(schema))].toSorted());
  });
});
