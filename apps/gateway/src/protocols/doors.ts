import type { Router } from 'express';
import type { DoorApi } from './api-description.js';
import { batchesApi } from './batches/api.js';
import { type BatchDoorParts, batchesRouter } from './batches/router.js';
import type { DoorParts } from './door-parts.js';
import { filesApi } from './files/api.js';
import { type FilesDoorParts, filesRouter } from './files/router.js';
import { jobsApi } from './jobs/api.js';
import { type JobsParts, jobsRouter } from './jobs/router.js';
import { modelsApi } from './models/api.js';
import { modelsRouter } from './models/router.js';
import { nativeApi } from './native/api.js';
import { nativeRouter } from './native/router.js';
import { openInferenceApi } from './open-inference/api.js';
import { openInferenceRouter } from './open-inference/router.js';
import { openaiApi } from './openai/api.js';
import { openaiRouter } from './openai/router.js';
import { teiApi } from './tei/api.js';
import { teiRouter } from './tei/router.js';

/** A door of the gateway and what the OpenAPI document tells of it: neither is there without the other. */
export interface Door {
  router: Router;
  api: DoorApi;
}

/** Every protocol that clients can speak, over HTTP. */
export function protocolDoors(
  parts: DoorParts,
  jobs: JobsParts,
  files: FilesDoorParts,
  batches: BatchDoorParts,
): Door[] {
  return [
    { router: nativeRouter(parts), api: nativeApi },
    { router: openInferenceRouter(parts), api: openInferenceApi },
    { router: openaiRouter(parts), api: openaiApi },
    { router: modelsRouter(parts), api: modelsApi },
    { router: jobsRouter(jobs), api: jobsApi },
    { router: filesRouter(files), api: filesApi },
    { router: batchesRouter(batches), api: batchesApi },
    { router: teiRouter(parts), api: teiApi },
  ];
}
