import { MillraceError, type RedisClock } from '@millrace/shared';
import { type Request, type Response, Router } from 'express';
import { readBody } from '../../http/body.js';
import { methodNotAllowed } from '../../http/errors.js';
import type { DurableRequests } from '../../jobs/durable.js';
import { JOB_STATES } from '../../jobs/job-status.js';
import { type FinderParts, type Found, RequestFinder } from './find-request.js';
import { REQUESTS_PATH, requestPath } from './links.js';
import { listPage, listRequests } from './list-page.js';
import { jobPage, notFoundPage, requestPage } from './request-page.js';

const MAX_FORM_BYTES = 4096;
/** An id as we make them; behind one, the first item of a part, as in the ids of jobs. */
const ID = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\d{1,9})?$/i;

export interface RequestPagesParts extends FinderParts {
  clock: RedisClock;
  durable: DurableRequests;
  /** Whether the dashboard may change anything. */
  admin: boolean;
}

/** What the dashboard around it knows of who is logged in. */
export interface FormGuard {
  tokenOf(req: Request): string;
  isRight(req: Request, token: string): boolean;
}

export type Show = (res: Response, status: number, html: string) => void;

/** `/dashboard/requests`: the kept requests of all API keys, and one request with its parts. */
export function requestsRouter(parts: RequestPagesParts, guard: FormGuard, show: Show): Router {
  const { admin, clock, durable, producer, records } = parts;
  const finder = new RequestFinder(parts);
  const router = Router({ caseSensitive: true });
  router.use((_req, res, next) => {
    if (producer.ready) next();
    else show(res, 503, notFoundPage('', 'Redis does not answer. Try again in a moment.'));
  });

  const showFound = (req: Request, res: Response, found: Found | undefined, message?: string): void => {
    const id = String(req.params.id);
    if (!found) show(res, 404, notFoundPage(id, NOTHING_KEPT));
    else if ('job' in found) show(res, 200, jobPage(found.job));
    else {
      const formToken = admin ? guard.tokenOf(req) : undefined;
      const options = { formToken, now: clock.now(), ...(message === undefined ? {} : { message }) };
      show(res, message === undefined ? 200 : 409, requestPage(found.request, options));
    }
  };

  router
    .route('/')
    .get(async (req, res) => {
      const { id, state: asked, from } = req.query;
      if (id !== undefined) {
        const sought = String(id).trim();
        const [, known] = ID.exec(sought) ?? [];
        if (known === undefined) show(res, 404, notFoundPage(sought, NO_ID));
        else res.redirect(303, requestPath(known.toLowerCase()));
        return;
      }
      const state = JOB_STATES.find((each) => each === asked);
      const skipped = Math.min(Number.parseInt(String(from), 10) || 0, Number.MAX_SAFE_INTEGER);
      show(res, 200, listPage(await listRequests(parts, state, Math.max(0, skipped)), state));
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/:id')
    .get(async (req, res) => {
      const [, known] = ID.exec(req.params.id) ?? [];
      if (known === undefined) show(res, 404, notFoundPage(req.params.id, NO_ID));
      else showFound(req, res, await finder.find(known.toLowerCase()));
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/:id/cancel')
    .post(async (req, res) => {
      const form = new URLSearchParams((await readBody(req, MAX_FORM_BYTES)).toString());
      if (!guard.isRight(req, form.get('token') ?? '')) {
        throw new MillraceError('forbidden', 'The form is of another session. Open the request again.');
      }
      const record = await records.find(req.params.id);
      if (!record) return showFound(req, res, undefined);
      try {
        await durable.cancel(record);
      } catch (error) {
        if (!(error instanceof MillraceError)) throw error;
        return showFound(req, res, await finder.find(record.id), error.message);
      }
      res.redirect(303, requestPath(record.id));
    })
    .all(methodNotAllowed('POST'));
  router.use((_req, res) => res.redirect(303, REQUESTS_PATH));
  return router;
}

const NOTHING_KEPT =
  'Nothing is kept of a request or job with this id. A request that was sent without Prefer: respond-async is found while its job is in its queue, or among the last ones that its queue keeps.';
const NO_ID =
  'This is no id. A request’s is in its answer’s header X-Request-Id (or X-Millrace-Request-Id, where the client named it).';
