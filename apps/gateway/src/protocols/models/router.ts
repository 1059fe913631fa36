import { Router } from 'express';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import type { ModelDirectory } from '../../inference/model-directory.js';
import type { DoorParts } from '../door-parts.js';

type Listed = ReturnType<ModelDirectory['list']>[number];

/** `GET /v1/models` and `/v1/models/{model}`: the OpenAI list's shape, with what we know of a model added. */
export function modelsRouter({
  clock,
  directory,
  keyed,
}: Pick<DoorParts, 'clock' | 'directory' | 'keyed'>): Router {
  const router = Router({ caseSensitive: true });
  router
    .route('/v1/models')
    .all(keyed)
    .get((_req, res) => {
      const data = directory.list().map(listEntry);
      respondJson(res, 200, { object: 'list', data }, clock.now());
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/v1/models/:model')
    .all(keyed)
    .get((req, res) => {
      const description = directory.resolve(req.params.model);
      const ready = directory.isServed(description);
      respondJson(res, 200, listEntry({ description, ready }), clock.now());
    })
    .all(methodNotAllowed('GET'));
  return router;
}

function listEntry({ description, ready }: Pick<Listed, 'description' | 'ready'>): object {
  const { name, version, task, inputs, outputs, limits } = description;
  return {
    id: name,
    object: 'model',
    created: 0,
    owned_by: 'millrace',
    version,
    task,
    inputs,
    outputs,
    limits,
    ready,
  };
}
