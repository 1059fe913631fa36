import { MillraceError } from '@millrace/shared';
import { Router } from 'express';
import { readBody, requireJsonType } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { AnswerWriter } from '../answering.js';
import type { DoorParts } from '../door-parts.js';
import { newInferRequest } from '../new-request.js';
import { modelMetadata, serverMetadata } from './metadata.js';
import { type ParsedInfer, parseInfer } from './parse.js';
import { renderInference } from './render.js';

const write: AnswerWriter<Pick<ParsedInfer, 'id' | 'outputs'>> = (result, _timings, { id, outputs }) => ({
  contentType: 'application/json',
  body: renderInference(result, id, outputs),
});

const MODEL = '/v2/models/:model{/versions/:version}';

/** The Open Inference Protocol, version 2, with JSON tensors: all or nothing. */
export function openInferenceRouter({
  clock,
  directory,
  bodies,
  answer,
  settings,
  keyed,
}: DoorParts): Router {
  const router = Router({ caseSensitive: true });
  router
    .route('/v2')
    .all(keyed)
    .get((_req, res) => respondJson(res, 200, serverMetadata(), clock.now()))
    .all(methodNotAllowed('GET'));
  router
    .route(`${MODEL}/infer`)
    .all(keyed)
    .post(async (req, res) => {
      const context = contextOf(res);
      const model = directory.resolve(req.params.model, req.params.version);
      context.model = model.name;
      if (req.headers['inference-header-content-length'] !== undefined) {
        throw new MillraceError(
          'unsupported',
          'The header Inference-Header-Content-Length announces binary tensors, which are not supported yet.',
          {
            field: 'Inference-Header-Content-Length',
          },
        );
      }
      requireJsonType(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const parsed = parseInfer(model, parseStrictJson(body, settings.maxJsonDepth));
      const request = newInferRequest(context, req.headers, model, parsed, settings);
      await answer(req, res, write, { body, request, asked: parsed });
    })
    .all(methodNotAllowed('POST'));
  router
    .route(`${MODEL}/ready`)
    .all(keyed)
    .get((req, res) => {
      const model = directory.resolve(req.params.model, req.params.version);
      const ready = directory.isServed(model);
      respondJson(res, ready ? 200 : 503, { name: model.name, ready }, clock.now());
    })
    .all(methodNotAllowed('GET'));
  router
    .route(MODEL)
    .all(keyed)
    .get((req, res) => {
      const model = directory.resolve(req.params.model, req.params.version);
      respondJson(res, 200, modelMetadata(model, directory.versions(model.name)), clock.now());
    })
    .all(methodNotAllowed('GET'));
  return router;
}
