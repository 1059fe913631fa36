import { z } from 'zod';

/** Requests and answers of `/v1/files`, in OpenAI's shapes. */

const SECONDS_PER_HOUR = 3600;
const SECONDS_PER_DAY = 24 * SECONDS_PER_HOUR;
const MOST_DAYS = 30;

const seconds = z.coerce
  .number({ error: 'must be a number' })
  .int('must be a whole number')
  .min(SECONDS_PER_HOUR, `must be at least ${SECONDS_PER_HOUR}, an hour`)
  .max(MOST_DAYS * SECONDS_PER_DAY, `must be at most ${MOST_DAYS * SECONDS_PER_DAY}, ${MOST_DAYS} days`);

/** The fields of an upload beside its file, as they are read. */
export const uploadFieldsSchema = z.strictObject({
  purpose: z
    .literal('batch', {
      error: ({ input }) =>
        input === undefined ? 'is missing' : 'must be "batch": files are for nothing else here',
    })
    .describe('What the file is for: `batch`.'),
  // The file itself is no field. It stands here to be named among those that there are.
  file: z.never('must be a file: its part of the form has no filename').optional(),
  'expires_after[anchor]': z
    .literal('created_at', { error: 'must be "created_at"' })
    .optional()
    .describe('From when `expires_after[seconds]` counts: `created_at`.'),
  'expires_after[seconds]': seconds
    .optional()
    .describe(
      'How long the file is kept, in seconds: an hour to 30 days, and no longer than files are kept here.',
    ),
});

/** The whole form, as it is documented. */
export const uploadSchema = uploadFieldsSchema
  .extend({
    'expires_after[seconds]': z
      .int()
      .min(SECONDS_PER_HOUR)
      .max(MOST_DAYS * SECONDS_PER_DAY)
      .optional()
      .describe(uploadFieldsSchema.shape['expires_after[seconds]'].description ?? ''),
    file: z
      .string()
      .describe('The file, with its name. Before or after the fields.')
      .meta({ format: 'binary' }),
  })
  .meta({ id: 'UploadFileRequest' });

const time = z.int().min(0);

/** A file as it is answered. */
export const fileSchema = z
  .strictObject({
    id: z.string().regex(/^file-[0-9a-f]{32}$/),
    object: z.literal('file'),
    bytes: z.int().min(0),
    created_at: time.describe('In epoch seconds.'),
    expires_at: time.describe('When it is deleted, in epoch seconds.'),
    filename: z.string(),
    purpose: z.enum(['batch', 'batch_output']).describe('What it is for, or that a batch has written it.'),
    status: z.literal('processed'),
  })
  .meta({ id: 'File' });

export const fileListSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(fileSchema),
    first_id: z.string().nullable(),
    last_id: z.string().nullable().describe('The `after` of the next page.'),
    has_more: z.boolean(),
  })
  .meta({ id: 'FileList' });

export const deletedFileSchema = z
  .strictObject({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) })
  .meta({ id: 'DeletedFile' });

const MOST_LISTED = 10_000;

/** Query of `GET /v1/files`. */
export const listFilesQuerySchema = z.strictObject({
  purpose: z.enum(['batch', 'batch_output']).optional().describe('Only files of this purpose.'),
  limit: z.coerce
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(MOST_LISTED, `must be at most ${MOST_LISTED}`)
    .default(MOST_LISTED)
    .describe('Most files on a page.'),
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .describe('By when they were made: `asc`, or `desc` for the newest first.'),
  after: z.string().optional().describe('Where to go on: the id of the last file of the page before.'),
});

export const MOST_FILENAME = 255;
