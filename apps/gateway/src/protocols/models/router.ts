import type { ModelDescription } from '@millrace/shared';
import { Router } from 'express';
import { methodNotAllowed } from '../../http/errors.js';
import { respondJson } from '../../http/respond.js';
import type { ModelDirectory } from '../../inference/model-directory.js';
import type { DoorParts } from '../door-parts.js';

/**
 * `GET /v1/models` and `/v1/models/{model}`: OpenAI's shapes, with what we know of a model added. A model of
 * several versions is one entry, of the version that is asked where none is named.
 */
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
      const names = new Set(directory.list().map(({ description }) => description.name));
      const data = [...names].map((name) => entryOf(directory, directory.resolve(name)));
      respondJson(res, 200, { object: 'list', data }, clock.now());
    })
    .all(methodNotAllowed('GET'));
  router
    .route('/v1/models/:model')
    .all(keyed)
    .get((req, res) => {
      respondJson(res, 200, entryOf(directory, directory.resolve(req.params.model)), clock.now());
    })
    .all(methodNotAllowed('GET'));
  return router;
}

function entryOf(directory: ModelDirectory, model: ModelDescription): object {
  const { name, version, task, inputs, outputs, limits } = model;
  return {
    id: name,
    object: 'model',
    created: Math.floor(directory.knownSince(model) / 1000),
    owned_by: 'millrace',
    version,
    versions: directory.versions(name),
    task,
    inputs,
    outputs,
    limits,
    ready: directory.isServed(model),
  };
}
