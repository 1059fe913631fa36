import type { MillraceError } from '@millrace/shared';
import { expect } from 'chai';
import { z } from 'zod';
import { readBy } from './read-by.js';

const schema = z.strictObject({
  model: z.string(),
  format: z.enum(['float', 'base64']).optional(),
  entries: z
    .array(z.strictObject({ count: z.int().min(1).max(9) }))
    .min(1)
    .optional(),
});

function faultOf(value: unknown): MillraceError {
  try {
    readBy(schema, value);
  } catch (error) {
    return error as MillraceError;
  }
  throw new Error('It was taken.');
}

describe('reading by a schema', () => {
  it('returns what fits', () => {
    const value = { model: 'm', entries: [{ count: 3 }] };
    expect(readBy(schema, value)).to.deep.equal(value);
  });

  it('ignores __proto__', () => {
    const value = JSON.parse('{"model": "m", "__proto__": {"format": "float"}}') as object;
    const read = readBy(schema, value);
    expect(read).to.deep.equal({ model: 'm' });
    expect(read.format).to.equal(undefined);
  });

  it('names the field at fault and what it must be', () => {
    const faults: [unknown, string, string][] = [
      [{}, 'model', 'model is missing.'],
      [[], 'body', 'body must be an object.'],
      [{ model: 3 }, 'model', 'model must be a string.'],
      [{ model: 'm', format: 'hex' }, 'format', 'format must be "float" or "base64".'],
      [
        { model: 'm', fromat: 'hex' },
        'fromat',
        'fromat is not a field here; there are model, format, entries.',
      ],
      [{ model: 'm', entries: [] }, 'entries', 'entries must have at least 1 entries.'],
      [
        { model: 'm', entries: [{ count: 1 }, { count: 0 }] },
        'entries[1].count',
        'entries[1].count must be at least 1.',
      ],
      [
        { model: 'm', entries: [{ count: 1, x: 0 }] },
        'entries[0].x',
        'entries[0].x is not a field here; there are count.',
      ],
    ];
    for (const [value, field, message] of faults) {
      expect(faultOf(value)).to.include({ code: 'invalid_input', message });
      expect(faultOf(value).details).to.include({ field });
    }
  });
});
