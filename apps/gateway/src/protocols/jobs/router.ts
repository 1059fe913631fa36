import { createHash } from 'node:crypto';
import { MillraceError, type RedisClock } from '@millrace/shared';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { type Answer, respond, respondJson, timingsOf } from '../../http/respond.js';
import { type DurableRequests, errorOf, hasEnded } from '../../jobs/durable.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { JobRecords, ListCursor } from '../../jobs/job-records.js';
import type { JobStatus, JobStatuses } from '../../jobs/job-status.js';
import { readBy } from '../read-by.js';
import { redisErrors, requireRedis } from '../redis-away.js';
import type { Writers } from '../writers.js';
import type { EventStreams } from './events.js';
import { jobBody, jobPath } from './render.js';
import { listQuerySchema, waitQuerySchema } from './schema.js';

const JSON_TYPE = 'application/json; charset=utf-8';
/** A result up to this many bytes of JSON stands in the job's own answer too. */
const MOST_INSIDE_BYTES = 1024 * 1024;

export interface JobsParts {
  clock: RedisClock;
  /** First handler: asks for an API key of the scope `jobs` where there are any. */
  keyed: RequestHandler;
  durable: DurableRequests;
  records: JobRecords;
  statuses: JobStatuses;
  writers: Writers;
  events: EventStreams;
  /** Whether Redis answers. */
  isReady(): boolean;
  predictedWaitMs(record: JobRecord, jobs: number): number | undefined;
}

/** `/v1/jobs`: the durable requests of an API key. Another key's are not there. */
export function jobsRouter(parts: JobsParts): Router {
  const { clock, durable, records, events } = parts;
  const router = Router({ caseSensitive: true });
  const keyed = [parts.keyed, requireRedis(parts.isReady)];
  const find = (req: Request<{ job: string }>, res: Response): Promise<JobRecord> =>
    records.read(req.params.job, contextOf(res).tenant).then((record) => {
      contextOf(res).model = record.model.name;
      return record;
    });
  router
    .route('/v1/jobs')
    .all(...keyed)
    .get(async (req, res) => {
      respondJson(res, 200, await page(parts, req, contextOf(res).tenant), clock.now());
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/v1/jobs/:job')
    .all(...keyed)
    .get(async (req, res) => {
      const { wait } = readBy(waitQuerySchema, req.query, 'query');
      const answer = await jobAnswer(parts, await find(req, res), wait * 1000, req, res);
      respond(res, answer, timingsOf({}, contextOf(res).received, clock.now()));
    })
    .delete(async (req, res) => {
      const record = await find(req, res);
      await durable.cancel(record);
      const cancelled = await records.read(record.id, record.owner);
      respondJson(res, 200, jobBody(cancelled, await parts.statuses.of(cancelled)), clock.now());
    })
    .all(methodNotAllowed('GET', 'DELETE'));
  router
    .route('/v1/jobs/:job/result')
    .all(...keyed)
    .get(async (req, res) => {
      const { wait } = readBy(waitQuerySchema, req.query, 'query');
      const record = await find(req, res);
      const status = await durable.standing(record, wait * 1000, contextOf(res).gone);
      const answer = await resultAnswer(parts, record, status);
      respond(res, answer, timingsOf({}, contextOf(res).received, clock.now()));
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/v1/jobs/:job/events')
    .all(...keyed)
    .get(async (req, res) => events.open(await find(req, res), req, res))
    .all(methodNotAllowed('GET'));
  router.use(redisErrors);
  return router;
}

/** A job, once it has ended, changed, or been waited for long enough. */
async function jobAnswer(
  { durable, writers, statuses, predictedWaitMs }: JobsParts,
  record: JobRecord,
  waitMs: number,
  req: Request,
  res: Response,
): Promise<Answer> {
  const known = tagsOf(req.headers['if-none-match']);
  let status = await statuses.of(record);
  if (waitMs > 0 && !hasEnded(status) && (known === undefined || names(known, status))) {
    const isNews = (now: JobStatus): boolean => hasEnded(now) || (known !== undefined && !names(known, now));
    status = await durable.standing(record, waitMs, contextOf(res).gone, isNews);
  }
  if (status.state === 'expired') throw new MillraceError('job_expired');
  const etag = etagOf(status);
  const headers = ['ETag', etag, 'Cache-Control', 'private, no-cache'];
  if (known && names(known, status)) return { status: 304, contentType: JSON_TYPE, body: '', headers };
  const { id, writer, asked } = record;
  const body = jobBody(record, status, predictedWaitMs(record, status.position ?? 0));
  if (status.error) {
    const { status: code, body: error } = writers.refuse(writer, status.error, id);
    return {
      status: 200,
      contentType: JSON_TYPE,
      body: `${JSON.stringify({ ...body, errorStatus: code }).slice(0, -1)},"error":${error}}`,
      headers,
    };
  }
  let json = JSON.stringify(body);
  if (status.state === 'done') {
    const result = writers.write(writer, await durable.result(record), asked);
    const inside =
      result.contentType.startsWith('application/json') && result.body.length <= MOST_INSIDE_BYTES;
    if (inside) json = `${json.slice(0, -1)},"result":${result.body}}`;
  }
  return { status: 200, contentType: JSON_TYPE, body: json, headers };
}

/** What the door would have answered; a 202 while there is nothing to answer yet. */
async function resultAnswer(
  { durable, writers }: JobsParts,
  record: JobRecord,
  status: JobStatus,
): Promise<Answer> {
  const { id, writer, asked } = record;
  if (status.state === 'done') return writers.write(writer, await durable.result(record), asked);
  const error = errorOf(status);
  if (error?.code === 'job_expired') throw error;
  if (error) return writers.refuse(writer, error, id);
  return {
    status: 202,
    contentType: JSON_TYPE,
    body: JSON.stringify(jobBody(record, status)),
    headers: ['Location', jobPath(id), 'Retry-After', '1'],
  };
}

async function page({ records, statuses, clock }: JobsParts, req: Request, owner: string): Promise<object> {
  const query = readBy(listQuerySchema, req.query, 'query');
  const found = new Map<string, JobStatus>();
  const { records: jobs, next } = await records.list(
    owner,
    { from: query.from ?? 0, to: query.to ?? clock.now(), after: cursorOf(query.cursor) },
    query.limit,
    async (record) => {
      if (query.model !== undefined && record.model.name !== query.model) return false;
      const status = await statuses.of(record);
      found.set(record.id, status);
      return query.state === undefined || query.state === status.state;
    },
  );
  return {
    object: 'list',
    data: jobs.map((job) => jobBody(job, found.get(job.id) ?? { state: 'queued', itemsDone: 0 })),
    next: next && `${next.receivedAt}_${next.id}`,
  };
}

function cursorOf(cursor: string | undefined): ListCursor | undefined {
  const [receivedAt, id = ''] = cursor?.split('_') ?? [];
  return receivedAt === undefined ? undefined : { receivedAt: Number(receivedAt), id };
}

/** The tags of `If-None-Match` (RFC 9110, section 13.1.2), which compares weakly. */
function tagsOf(header: string | undefined): ReadonlySet<string> | undefined {
  return header === undefined ? undefined : new Set(header.match(/"[^"]*"|\*/g));
}

function names(tags: ReadonlySet<string>, status: JobStatus): boolean {
  return tags.has('*') || tags.has(etagOf(status));
}

/** Changes with what a job's answer says that matters. */
function etagOf({ state, itemsDone, position, error }: JobStatus): string {
  const said = JSON.stringify([state, itemsDone, position, error?.message]);
  return `"${createHash('sha256').update(said).digest('base64url').slice(0, 16)}"`;
}
