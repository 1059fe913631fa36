import { Router } from 'express';
import { readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respond, timingsOf } from '../../http/respond.js';
import { parseStrictJson } from '../../http/strict-json.js';
import { failIfAnyFailed } from '../../inference/item-errors.js';
import type { DoorParts } from '../door-parts.js';
import { newInferRequest } from '../new-request.js';
import { parsePredict } from './parse.js';
import { renderPrediction } from './render.js';

const JSON_TYPE = 'application/json; charset=utf-8';

/** `POST /v1/models/{model}[/versions/{version}]/predict`: a task's natural values, one or a list. */
export function nativeRouter({ clock, directory, infer, settings, keyed }: DoorParts): Router {
  const router = Router({ caseSensitive: true });
  router
    .route('/v1/models/:model{/versions/:version}/predict')
    .all(keyed)
    .post(async (req, res) => {
      const context = contextOf(res);
      const model = directory.resolve(req.params.model, req.params.version);
      context.model = model.name;
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes);
      const parsed = parsePredict(model, parseStrictJson(body, settings.maxJsonDepth));
      const request = newInferRequest(context, req.headers, model, parsed, settings);
      const result = await infer(request);
      if (!request.partial) failIfAnyFailed(result);
      const timings = timingsOf(result.stamps, context.received, clock.now());
      respond(res, 200, JSON_TYPE, renderPrediction(result, timings), timings);
    })
    .all(methodNotAllowed('POST'));
  return router;
}
