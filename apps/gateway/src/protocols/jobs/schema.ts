import { PRIORITIES } from '@millrace/shared';
import { z } from 'zod';
import { JOB_STATES } from '../../jobs/job-status.js';

const time = z.iso.datetime();

/** A job as it is answered. */
export const jobSchema = z
  .object({
    object: z.literal('job'),
    id: z.uuid(),
    state: z.enum(JOB_STATES),
    model: z.string(),
    version: z.string(),
    priority: z.enum(Object.keys(PRIORITIES)),
    items: z.object({ total: z.int(), done: z.int().describe('Answered, whatever with.') }),
    position: z.int().optional().describe('Jobs that go before it, while it is queued.'),
    predictedWaitMs: z.int().optional().describe('How long those are expected to take, in ms.'),
    receivedAt: time,
    notBefore: time.optional(),
    deadlineAt: time.describe('What has not begun by then is dropped.'),
    keepUntil: time.describe('Until then its result can be asked for.'),
    cancelledAt: time.optional(),
    callback: z.string().optional().describe('Who is told of its end.'),
    resultUrl: z.string().optional().describe('Where the answer is, as the door gives it, once it is done.'),
    result: z.any().optional().describe('That answer, where it is JSON of at most 1 MiB.'),
    errorStatus: z.int().optional().describe('The status with which it failed.'),
    error: z.any().optional().describe('Why it failed, in the shape of its door.'),
  })
  .meta({ id: 'Job' });

export const jobListSchema = z
  .object({
    object: z.literal('list'),
    data: z.array(jobSchema).describe('The newest first.'),
    next: z.string().optional().describe('The cursor of the next page, where there is more.'),
  })
  .meta({ id: 'JobList' });

const whole = (least: number, most: number) =>
  z.coerce
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`);

const moment = z.iso
  .datetime({ offset: true, error: 'must be a time as 2031-01-31T12:00:00Z' })
  .transform((text) => Date.parse(text));

/** Query of `GET /v1/jobs`. */
export const listQuerySchema = z.strictObject({
  state: z.enum(JOB_STATES).optional().describe('Only jobs in this state.'),
  model: z.string().optional().describe('Only jobs of this model.'),
  from: moment.optional().describe('Only jobs received at this time or later.'),
  to: moment.optional().describe('Only jobs received at this time or earlier.'),
  limit: whole(1, 100).default(20).describe('Most jobs on a page.'),
  cursor: z
    .string()
    .regex(/^\d{1,16}(?:\.\d{1,16})?_[0-9a-f-]{36}$/, 'must be the "next" of another page')
    .optional()
    .describe('Where to go on: the `next` of the page before.'),
});

/** Query of `GET /v1/jobs/{job}`. */
export const waitQuerySchema = z.strictObject({
  wait: whole(0, 3600)
    .default(0)
    .describe('Seconds to wait for the end, or for a change of what `If-None-Match` names.'),
});
