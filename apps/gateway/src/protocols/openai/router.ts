import { Router } from 'express';
import { readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { DoorParts } from '../door-parts.js';
import { newInferRequest } from '../new-request.js';
import { readBy } from '../read-by.js';
import { parseEmbeddings } from './parse.js';
import { writeEmbeddings } from './render.js';
import { embeddingsRequestSchema } from './schema.js';

/** OpenAI's `POST /v1/embeddings`: all or nothing. */
export function openaiRouter({ directory, bodies, answer, settings, keyed }: DoorParts): Router {
  const router = Router({ caseSensitive: true });
  router
    .route('/v1/embeddings')
    .all(keyed)
    .post(async (req, res) => {
      const context = contextOf(res);
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const fields = readBy(embeddingsRequestSchema, parseStrictJson(body, settings.maxJsonDepth));
      const model = directory.resolve(fields.model);
      context.model = model.name;
      const { parsed, asked } = parseEmbeddings(model, fields);
      const request = newInferRequest(context, req.headers, model, parsed, settings);
      await answer(req, res, writeEmbeddings, { body, request, asked });
    })
    .all(methodNotAllowed('POST'));
  return router;
}
