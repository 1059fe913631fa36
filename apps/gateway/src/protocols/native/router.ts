import { Router } from 'express';
import { isLines, readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { DoorParts } from '../door-parts.js';
import { newInferRequest } from '../new-request.js';
import { PREDICT_PATH } from './api.js';
import { predictLines } from './lines.js';
import { parsePredict } from './parse.js';
import { writePrediction } from './render.js';

/** `POST /v1/models/{model}[/versions/{version}]/predict`: a task's natural values, one or a list, or lines of them. */
export function nativeRouter(parts: DoorParts): Router {
  const { directory, bodies, answer, settings, keyed } = parts;
  const router = Router({ caseSensitive: true });
  router
    .route(PREDICT_PATH)
    .all(keyed)
    .post(async (req, res) => {
      const context = contextOf(res);
      const model = directory.resolve(req.params.model, req.params.version);
      context.model = model.name;
      if (isLines(req)) {
        await predictLines(req, res, parts, model);
        return;
      }
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const parsed = parsePredict(model, parseStrictJson(body, settings.maxJsonDepth));
      const request = newInferRequest(context, req.headers, model, parsed, settings);
      await answer(req, res, writePrediction, { body, request, asked: undefined });
    })
    .all(methodNotAllowed('POST'));
  return router;
}
