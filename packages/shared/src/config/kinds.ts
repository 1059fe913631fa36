import { z } from 'zod';
import { readKeyEntries } from './key-entry.js';

/**
 * The kinds of values that settings take. Each says what it must be in words that go on after the setting's
 * name: `--port is "x", but must be a whole number from 0 to 65535`.
 */

export function whole(min: number, max?: number) {
  const error = `must be a whole number ${max === undefined ? `of at least ${min}` : `from ${min} to ${max}`}`;
  const number = z.coerce.number({ error }).int({ error }).min(min, { error });
  return max === undefined ? number : number.max(max, { error });
}

export const port = whole(0, 65_535);

/** A port, or a word for letting Millrace choose, or for none. */
export const portOrWord = z.union([z.enum(['auto', 'off']), port], {
  error: 'must be auto, off or a port from 0 to 65535',
});

export const flag = z
  .union([z.boolean(), z.enum(['true', 'false', '1', '0', ''])], { error: 'must be true or false' })
  .transform((value) => value === true || value === 'true' || value === '1');

export function choice<const T extends readonly [string, ...string[]]>(values: T) {
  const last = values.at(-1);
  return z.enum(values, { error: `must be ${values.slice(0, -1).join(', ')} or ${last}` });
}

export const text = z.string({ error: 'must be a text' });

export const names = z
  .union([z.array(z.string()), z.string()], { error: 'must be names with commas between' })
  .transform((value) =>
    Array.isArray(value)
      ? value
      : value
          .split(',')
          .map((s) => s.trim())
          .filter(Boolean),
  );

/** Origins as browsers send them, or `*` alone. */
export const origins = names.refine(
  (given) =>
    given.every((each) => each === '*' || isOrigin(each)) && (given.length < 2 || !given.includes('*')),
  { error: 'must be origins such as https://app.example.com with commas between, or * alone' },
);

function isOrigin(value: string): boolean {
  return URL.canParse(value) && new URL(value).origin === value;
}

/** A bucket of S3, with or without a prefix in it. */
const S3_URL = /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[a-zA-Z0-9._/-]*)?$/;

/** Where files are kept: a folder, or a place in S3. */
export const filePlace = text.refine((given) => S3_URL.test(given) || !/^[a-z0-9+.-]+:\/\//i.test(given), {
  error: 'must be the path of a folder, or s3://BUCKET or s3://BUCKET/PREFIX',
});

export const httpUrl = text.refine(
  (given) => given === '' || (/^https?:\/\//.test(given) && URL.canParse(given)),
  { error: 'must be a URL such as https://s3.example.com' },
);

export const keyEntries = names.superRefine((entries, context) => {
  try {
    readKeyEntries(entries);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});
