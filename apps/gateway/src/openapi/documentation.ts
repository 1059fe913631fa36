import type { RedisClock } from '@millrace/shared';
import type { Router } from 'express';
import type { DoorApi } from '../protocols/api-description.js';
import type { Door } from '../protocols/doors.js';
import { VERSION } from '../protocols/version.js';
import { openApiDocument } from './document.js';
import { documentationApi, rootApi } from './documentation-api.js';
import { operationsApi } from './operations-api.js';
import { documentationRouter } from './router.js';

export interface DocumentationOptions {
  /** Whether API keys are asked for. */
  keyed: boolean;
  /** Whether metrics are shown without one. */
  metricsOpen: boolean;
}

/** The gateway's documentation of itself: every door's, and what there is beside them. */
export function documentation(
  clock: RedisClock,
  doors: readonly Door[],
  options: DocumentationOptions,
): Router {
  return documentationRouter(clock, () => documentOf(doors, options));
}

/** All that the gateway answers. */
export function apisOf(doors: readonly Door[], metricsOpen: boolean): DoorApi[] {
  return [...doors.map(({ api }) => api), operationsApi(metricsOpen), documentationApi, rootApi];
}

export function documentOf(
  doors: readonly Door[],
  { keyed, metricsOpen }: DocumentationOptions,
): Record<string, unknown> {
  return openApiDocument(apisOf(doors, metricsOpen), { version: VERSION, keyed });
}
