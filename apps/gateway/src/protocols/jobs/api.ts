import { z } from 'zod';
import { JOB_STATES } from '../../jobs/job-status.js';
import { type ApiParameter, BYTES, type DoorApi } from '../api-description.js';
import { nativeErrors } from '../native/problem.js';
import { problemSchema } from '../native/schema.js';
import { jobListSchema, jobSchema, listQuerySchema, waitQuerySchema } from './schema.js';

const JSON_TYPE = 'application/json';
const JOB = { contentType: JSON_TYPE, schema: jobSchema };
const WAIT: ApiParameter = {
  name: 'wait',
  in: 'query',
  description: waitQuerySchema.shape.wait.description ?? '',
  schema: z.int().min(0).max(3600),
};

/** What the query's texts must be, where that is not any text. */
const listParameters: Readonly<Record<string, z.ZodType>> = {
  state: z.enum(JOB_STATES),
  from: z.iso.datetime({ offset: true }),
  to: z.iso.datetime({ offset: true }),
  limit: z.int().min(1).max(100),
};

export const jobsApi: DoorApi = {
  title: 'Jobs',
  description:
    'Any inference with `Prefer: respond-async` is kept as a job: it goes on without its client, and whoever has the API key that sent it can ask for it at any gateway. Another key’s jobs are not there.',
  errors: nativeErrors,
  errorSchema: problemSchema,
  operations: [
    {
      id: 'listJobs',
      method: 'get',
      path: '/v1/jobs',
      summary: 'List your jobs, the newest first',
      parameters: Object.entries(listQuerySchema.shape).map(([name, schema]) => ({
        name,
        in: 'query' as const,
        description: schema.description ?? '',
        schema: listParameters[name] ?? z.string(),
      })),
      responses: {
        200: {
          description: 'A page of jobs.',
          contents: [{ contentType: JSON_TYPE, schema: jobListSchema }],
        },
      },
      errors: ['invalid_input', 'queue_unavailable'],
    },
    {
      id: 'getJob',
      method: 'get',
      path: '/v1/jobs/:job',
      summary: 'See where a job stands, with its result once it is done',
      parameters: [
        WAIT,
        {
          name: 'If-None-Match',
          in: 'header',
          description: 'The `ETag` of the last answer.',
          schema: z.string(),
        },
      ],
      responses: {
        200: {
          description: 'The job.',
          contents: [JOB],
          headers: [{ name: 'ETag', description: 'Changes when the job does.', schema: z.string() }],
        },
        304: { description: 'Nothing has changed.', contents: [] },
      },
      errors: ['queue_unavailable', 'job_not_found', 'job_expired'],
    },
    {
      id: 'cancelJob',
      method: 'delete',
      path: '/v1/jobs/:job',
      summary: 'Take a job back',
      responses: { 200: { description: 'The job, cancelled.', contents: [JOB] } },
      errors: ['queue_unavailable', 'job_not_found', 'job_ended'],
    },
    {
      id: 'getJobResult',
      method: 'get',
      path: '/v1/jobs/:job/result',
      summary: 'The answer as its door gives it',
      parameters: [WAIT],
      responses: {
        200: {
          description: 'What the request would have been answered without `respond-async`.',
          contents: [
            { contentType: JSON_TYPE, schema: z.any() },
            { contentType: 'application/octet-stream', schema: BYTES },
          ],
        },
        202: { description: 'There is no answer yet.', contents: [JOB] },
      },
      errors: ['queue_unavailable', 'job_not_found', 'job_cancelled', 'job_expired'],
    },
    {
      id: 'followJob',
      method: 'get',
      path: '/v1/jobs/:job/events',
      summary: 'Follow a job by server-sent events',
      description:
        'An event whenever its state, position or count of answered items changes, named as the state, the job as its data. It ends with the job. `Last-Event-ID` goes on where a connection broke.',
      parameters: [
        {
          name: 'Last-Event-ID',
          in: 'header',
          description: 'The id of the last event that was heard.',
          schema: z.string(),
        },
      ],
      responses: {
        200: { description: 'Events.', contents: [{ contentType: 'text/event-stream', schema: BYTES }] },
      },
      errors: ['queue_unavailable', 'job_not_found'],
    },
  ],
};
