import type { ModelDescription } from '@millrace/shared';
import { Router } from 'express';
import { readBody, requireJsonOrBytes } from '../../http/body.js';
import { contextOf } from '../../http/context.js';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import { parseStrictJson } from '../../http/strict-json.js';
import type { DoorParts } from '../door-parts.js';
import { newInferRequest } from '../new-request.js';
import { readBy } from '../read-by.js';
import { MODEL_PATH } from './api.js';
import { jsonLengthOf } from './binary-body.js';
import { modelMetadata, serverMetadata } from './metadata.js';
import { parseInfer } from './parse.js';
import { writeInference } from './render.js';
import { refuseToMove, repositoryIndex } from './repository.js';
import { repositoryIndexSchema } from './schema.js';
import { modelStatistics } from './statistics.js';

/** The Open Inference Protocol, version 2, with tensors in JSON and in bytes: all or nothing. */
export function openInferenceRouter({
  clock,
  directory,
  bodies,
  answer,
  statistics,
  settings,
  keyed,
}: DoorParts): Router {
  const counted = (versions: readonly ModelDescription[]) =>
    modelStatistics(
      versions.map(({ name, version }) => ({ name, version, statistics: statistics.read(name, version) })),
    );
  const router = Router({ caseSensitive: true });
  router
    .route('/v2')
    .all(keyed)
    .get((_req, res) => respondJson(res, 200, serverMetadata(), clock.now()))
    .all(methodNotAllowed('GET'));
  router
    .route(`${MODEL_PATH}/infer`)
    .all(keyed)
    .post(async (req, res) => {
      const context = contextOf(res);
      const model = directory.resolve(req.params.model, req.params.version);
      context.model = model.name;
      requireJsonOrBytes(req);
      const jsonLength = jsonLengthOf(req.headers);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      const parsed = parseInfer(model, body, jsonLength, settings.maxJsonDepth);
      const request = newInferRequest(context, req.headers, model, parsed, settings);
      await answer(req, res, writeInference, { body, request, asked: parsed });
    })
    .all(methodNotAllowed('POST'));
  router
    .route(`${MODEL_PATH}/ready`)
    .all(keyed)
    .get((req, res) => {
      const model = directory.resolve(req.params.model, req.params.version);
      const ready = directory.isServed(model);
      respondJson(res, ready ? 200 : 503, { name: model.name, ready }, clock.now());
    })
    .all(methodNotAllowed('GET'));
  router
    .route(`${MODEL_PATH}/stats`)
    .all(keyed)
    .get((req, res) => {
      const { model: name, version } = req.params;
      const model = directory.resolve(name, version);
      const versions = version === undefined ? directory.versions(name) : [model.version];
      const models = versions.map((each) => directory.resolve(name, each));
      respondJson(res, 200, counted(models), clock.now());
    })
    .all(methodNotAllowed('GET'));
  router.get('/v2/models/stats', keyed, (_req, res, next) => {
    // A model may have that name.
    if (directory.names().includes('stats')) next();
    else respondJson(res, 200, counted(directory.list().map(({ description }) => description)), clock.now());
  });
  router
    .route('/v2/repository/index')
    .all(keyed)
    .post(async (req, res) => {
      requireJsonOrBytes(req);
      const body = await readBody(req, settings.maxBodyBytes, bodies);
      // Clients that want all send nothing.
      const { ready = false } =
        body.byteLength === 0
          ? {}
          : readBy(repositoryIndexSchema, parseStrictJson(body, settings.maxJsonDepth));
      respondJson(res, 200, repositoryIndex(directory, ready), clock.now());
    })
    .all(methodNotAllowed('POST'));
  router
    .route(['/v2/repository/models/:model/load', '/v2/repository/models/:model/unload'])
    .all(keyed)
    .post(refuseToMove)
    .all(methodNotAllowed('POST'));
  router
    .route(MODEL_PATH)
    .all(keyed)
    .get((req, res) => {
      const model = directory.resolve(req.params.model, req.params.version);
      respondJson(res, 200, modelMetadata(model, directory.versions(model.name)), clock.now());
    })
    .all(methodNotAllowed('GET'));
  return router;
}
