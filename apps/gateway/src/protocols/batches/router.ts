import { MillraceError, type RedisClock, type Settings } from '@millrace/shared';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { BatchView } from '../../batches/batch-records.js';
import type { Batches, BatchRequest } from '../../batches/batches.js';
import { type BodyBytes, readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import { parseStrictJson } from '../../http/strict-json.js';
import { requireIdempotencyKey } from '../../idempotency/idempotency.js';
import { shortened } from '../client-names.js';
import { readBy } from '../read-by.js';
import { redisErrors, requireRedis } from '../redis-away.js';
import { isLineAddress } from './read-line.js';
import { batchBody, batchListBody } from './render.js';
import { batchListQuerySchema, batchRequestSchema, durationMs } from './schema.js';

export interface BatchDoorParts {
  batches: Batches;
  clock: RedisClock;
  bodies: BodyBytes;
  settings: Settings;
  /** First handler: asks for an API key of the scope `jobs` where there are any. */
  keyed: RequestHandler;
  /** The same of the scope `infer`, for what makes work. */
  keyedToInfer: RequestHandler;
  /** Whether Redis answers. */
  isReady(): boolean;
}

/** `/v1/batches`: files of requests that are run behind all other work, as OpenAI's. Another key's are not there. */
export function batchesRouter(parts: BatchDoorParts): Router {
  const { batches, clock, bodies, settings } = parts;
  const router = Router({ caseSensitive: true });
  const keyed = [parts.keyed, requireRedis(parts.isReady)];
  router
    .route('/v1/batches')
    .all(...keyed)
    .get(async (req, res) => {
      const { limit, after } = readBy(batchListQuerySchema, req.query, 'query');
      const { batches: views, hasMore } = await batches.records.list(contextOf(res).tenant, limit, after);
      respondJson(res, 200, batchListBody(views, hasMore), clock.now());
    })
    .post(parts.keyedToInfer, async (req, res) => {
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const request = readRequest(parseStrictJson(body, settings.maxJsonDepth), settings);
      const key = req.headers['idempotency-key'];
      const view = await batches.create(
        contextOf(res).tenant,
        request,
        key === undefined ? undefined : requireIdempotencyKey(String(key)),
      );
      respondJson(res, 200, batchBody(view), clock.now());
    })
    .all(methodNotAllowed('GET', 'POST'));

  type Turn = (id: string, owner: string) => Promise<BatchView>;
  const turning =
    (turn: Turn): RequestHandler<{ batch: string }> =>
    async (req, res) =>
      respondJson(res, 200, batchBody(await turn(req.params.batch, ownerOf(res))), clock.now());
  router
    .route('/v1/batches/:batch')
    .all(...keyed)
    .get(async (req: Request<{ batch: string }>, res: Response) => {
      const view = await batches.records.read(req.params.batch, ownerOf(res));
      respondJson(res, 200, batchBody(view), clock.now());
    })
    .all(methodNotAllowed('GET'));
  const turns: Record<string, Turn> = {
    cancel: (id, owner) => batches.cancel(id, owner),
    pause: (id, owner) => batches.pause(id, owner),
    resume: (id, owner) => batches.resume(id, owner),
  };
  for (const [name, turn] of Object.entries(turns)) {
    router
      .route(`/v1/batches/:batch/${name}`)
      .all(...keyed)
      .post(turning(turn))
      .all(methodNotAllowed('POST'));
  }
  router.use(redisErrors);
  return router;
}

function ownerOf(res: Response): string {
  return contextOf(res).tenant;
}

/** @throws MillraceError `invalid_input` naming the field. */
function readRequest(value: unknown, { fileKeepMs }: Settings): BatchRequest {
  const body = readBy(batchRequestSchema, value);
  if (!isLineAddress(body.endpoint)) {
    throw new MillraceError(
      'invalid_input',
      `endpoint ${shortened(body.endpoint)} is no address whose requests can stand in a batch.`,
      { field: 'endpoint' },
    );
  }
  const keptSeconds = body.output_expires_after?.seconds;
  return {
    inputFileId: body.input_file_id,
    endpoint: body.endpoint,
    completionWindow: body.completion_window,
    windowMs: durationMs(body.completion_window),
    outputKeepMs: keptSeconds === undefined ? fileKeepMs : keptSeconds * 1000,
    ...(body.metadata ? { metadata: body.metadata } : {}),
  };
}
