import { MillraceError } from '@millrace/shared';
import type { z } from 'zod';
import { shortened } from './client-names.js';

const KINDS: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const UNITS: Record<string, string> = { array: 'entries', string: 'characters' };

/**
 * Reads a value by its schema: the same one that the OpenAPI document is made from. A schema's own words go on
 * after the field's name: `must be "float" or "base64"`.
 * @param root names the whole value where that is at fault.
 * @throws MillraceError `invalid_input` naming the first field at fault: `inputs[0].name`.
 */
export function readBy<S extends z.ZodType>(schema: S, value: unknown, root = 'body'): z.output<S> {
  const own = withoutProto(value);
  const parsed = schema.safeParse(own);
  if (parsed.success) return parsed.data;
  // Only now in our words: asked for them at once, zod takes ten times as long for what fits.
  const issues = schema.safeParse(own, { error: wordsOf }).error?.issues ?? [];
  // A field that is missing is most often one that is misspelt.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const path = issue?.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]] : (issue?.path ?? []);
  const field = fieldOf(path) || root;
  throw new MillraceError('invalid_input', `${field} ${issue?.message ?? 'is not valid'}.`, { field });
}

/** What zod finds, in words that go on after the field's name. */
function wordsOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type': {
      const what = KINDS[issue.expected] ?? `of the type ${issue.expected}`;
      return issue.input === undefined ? 'is missing' : `must be ${what}`;
    }
    case 'unrecognized_keys': {
      const fields = fieldsOf(issue.inst);
      return fields === '' ? 'is not a field here' : `is not a field here; there are ${fields}`;
    }
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'too_small': {
      const unit = UNITS[issue.origin];
      if (unit) return `must have at least ${issue.minimum} ${unit}`;
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    }
    case 'too_big': {
      const unit = UNITS[issue.origin];
      if (unit) return `must have at most ${issue.maximum} ${unit}`;
      return `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
    }
    default:
      return 'has none of the forms that are allowed here';
  }
}

/** The names that an object's schema knows. */
function fieldsOf(schema: z.core.$ZodRawIssue['inst']): string {
  const def = (schema as z.core.$ZodObject | undefined)?._zod.def;
  return def?.type === 'object' ? Object.keys(def.shape).join(', ') : '';
}

/** `__proto__` is no field of a client's making that anybody could have misspelt: it is ignored. */
function withoutProto(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, '__proto__')) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== '__proto__'));
}

function fieldOf(path: readonly (PropertyKey | undefined)[]): string {
  let field = '';
  for (const step of path) {
    if (typeof step === 'number') field += `[${step}]`;
    else field += `${field === '' ? '' : '.'}${shortened(String(step))}`;
  }
  return field;
}
