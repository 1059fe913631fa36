import type { GatewayMetrics, RedisClock } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { ModelDirectory } from '../inference/model-directory.js';
import type { QueueLoad } from '../inference/queue-load.js';
import { contextOf } from './context.js';
import { respond, timingsOf } from './respond.js';

/** A scrape sooner than this after the last, in ms, is answered without asking Redis again. */
const MEASURE_MS = 1000;

/** `GET /metrics`: queue depths and ages are read when they are asked for. */
export function metricsRoute(
  metrics: GatewayMetrics,
  directory: ModelDirectory,
  load: QueueLoad,
  clock: RedisClock,
): RequestHandler {
  let measuredAt = Number.NEGATIVE_INFINITY;
  return async (_req, res) => {
    if (performance.now() - measuredAt >= MEASURE_MS) {
      measuredAt = performance.now();
      await Promise.all(directory.list().map(({ queue }) => load.measure(queue, clock.now())));
    }
    const body = await metrics.registry.metrics();
    const timings = timingsOf({}, contextOf(res).received, clock.now());
    respond(res, 200, metrics.registry.contentType, body, timings);
  };
}
