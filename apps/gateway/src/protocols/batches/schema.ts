import { z } from 'zod';
import { BATCH_STATES } from '../../batches/batch-record.js';

const SECOND_MS = 1000;
const UNITS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: 60 * SECOND_MS,
  h: 3600 * SECOND_MS,
  d: 24 * 3600 * SECOND_MS,
};
/** Longest completion window, in ms. */
const LONGEST_WINDOW_MS = 7 * 24 * 3600 * SECOND_MS;
const DURATION = /^(\d{1,7})([smhd])$/;
const LEAST_KEPT_S = 3600;
const MOST_KEPT_S = 30 * 24 * 3600;

/** A completion window in ms; NaN for what is none. */
export function durationMs(text: string): number {
  const [, count = '', unit = ''] = DURATION.exec(text) ?? [];
  return count === '' ? Number.NaN : Number(count) * (UNITS[unit] ?? Number.NaN);
}

/** A line of an input file. */
export const batchLineSchema = z
  .strictObject({
    custom_id: z.string().max(512).describe('Your name for the line: its answer has it.'),
    method: z.literal('POST').optional(),
    url: z.string().optional().describe("An inference address; absent: the batch's endpoint."),
    body: z.looseObject({}).describe('The body that the address takes.'),
  })
  .meta({ id: 'BatchLine' });

const metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, { error: 'must have at most 16 entries' });

/** Body of `POST /v1/batches`. */
export const batchRequestSchema = z
  .strictObject({
    input_file_id: z.string().describe('A file with the purpose `batch`: JSON Lines, plain or gzip.'),
    endpoint: z.string().describe('The address of lines that name none.'),
    completion_window: z
      .string()
      .refine((text) => durationMs(text) > 0 && durationMs(text) <= LONGEST_WINDOW_MS, {
        error: 'must be a time as "24h", of at most 7 days',
      })
      .describe('How long it may take, as `24h`; what has not been run by then is not run.'),
    metadata: metadata.nullish().describe('Yours to choose; shown with the batch.'),
    output_expires_after: z
      .strictObject({
        anchor: z.literal('created_at'),
        seconds: z.int().min(LEAST_KEPT_S).max(MOST_KEPT_S),
      })
      .nullish()
      .describe('How long its output is kept.'),
  })
  .meta({ id: 'BatchRequest' });

const time = z.int().nullable();

/** A batch as it is answered. Times are in epoch seconds. */
export const batchSchema = z
  .strictObject({
    id: z.string(),
    object: z.literal('batch'),
    endpoint: z.string(),
    errors: z
      .strictObject({
        object: z.literal('list'),
        data: z.array(
          z.strictObject({
            code: z.string(),
            message: z.string(),
            param: z.string().nullable(),
            line: z.int().nullable(),
          }),
        ),
      })
      .nullable()
      .describe('Why it failed, or what holds it up for now.'),
    input_file_id: z.string(),
    completion_window: z.string(),
    status: z
      .enum(BATCH_STATES)
      .describe(
        '`paused`: by its owner, or, where `errors` says why, until its output can be written again.',
      ),
    output_file_id: z.string().nullable().describe('Once it has ended: the lines that were answered.'),
    error_file_id: z.string().nullable().describe('Once it has ended: the lines that failed.'),
    created_at: z.int(),
    in_progress_at: time,
    expires_at: z.int(),
    finalizing_at: time,
    completed_at: time,
    failed_at: time,
    expired_at: time,
    cancelling_at: time,
    cancelled_at: time,
    paused_at: time,
    request_counts: z.strictObject({
      total: z.int().describe('0 until the lines were counted.'),
      completed: z.int(),
      failed: z.int(),
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
  })
  .meta({ id: 'Batch' });

export const batchListSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(batchSchema).describe('The newest first.'),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'BatchList' });

/** Query of `GET /v1/batches`. */
export const batchListQuerySchema = z.strictObject({
  limit: z.coerce
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(100, 'must be at most 100')
    .default(20)
    .describe('Most batches on a page.'),
  after: z.string().optional().describe('The id of the last batch of the page before.'),
});
