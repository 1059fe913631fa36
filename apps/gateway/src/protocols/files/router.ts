import type { RedisClock } from '@millrace/shared';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { FileRecord } from '../../files/file-record.js';
import type { Files } from '../../files/files.js';
import { allowLongBody } from '../../http/arriving-bodies.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import { readBy } from '../read-by.js';
import { redisErrors, requireRedis } from '../redis-away.js';
import { sendContent } from './content.js';
import { deletedBody, fileBody, fileListBody } from './render.js';
import { listFilesQuerySchema } from './schema.js';
import { upload } from './upload.js';

export interface FilesDoorParts {
  clock: RedisClock;
  /** First handler: asks for an API key of the scope `jobs` where there are any. */
  keyed: RequestHandler;
  files: Files;
  maxFileBytes: number;
  /** Whose pages may send forms, beside our own. */
  corsOrigins: readonly string[];
  /** Whether Redis answers. */
  isReady(): boolean;
}

/** OpenAI's `/v1/files`: the files of an API key. Another key's are not there. */
export function filesRouter(parts: FilesDoorParts): Router {
  const { clock, files } = parts;
  const router = Router({ caseSensitive: true });
  const keyed = [parts.keyed, requireRedis(parts.isReady)];
  const find = (req: Request<{ file: string }>, res: Response): Promise<FileRecord> =>
    files.get(req.params.file, contextOf(res).tenant);
  router
    .route('/v1/files')
    .all(...keyed)
    .get(async (req, res) => {
      const asked = readBy(listFilesQuerySchema, req.query, 'query');
      const { records, hasMore } = await files.list(contextOf(res).tenant, asked);
      respondJson(res, 200, fileListBody(records, hasMore), clock.now());
    })
    .post(async (req, res) => {
      const { received, tenant } = contextOf(res);
      allowLongBody(req, res);
      const record = await upload(parts, req, tenant);
      if (record.createdAt < Math.floor(received)) res.setHeader('Idempotency-Replayed', 'true');
      respondJson(res, 200, fileBody(record), clock.now());
    })
    .all(methodNotAllowed('GET', 'POST'));
  router
    .route('/v1/files/:file')
    .all(...keyed)
    .get(async (req, res) => {
      respondJson(res, 200, fileBody(await find(req, res)), clock.now());
    })
    .delete(async (req, res) => {
      await files.remove(req.params.file, contextOf(res).tenant);
      respondJson(res, 200, deletedBody(req.params.file), clock.now());
    })
    .all(methodNotAllowed('GET', 'DELETE'));
  router
    .route('/v1/files/:file/content')
    .all(...keyed)
    .get(async (req, res) => {
      await sendContent(parts, await find(req, res), req, res);
    })
    .all(methodNotAllowed('GET'));
  router.use(redisErrors);
  return router;
}
