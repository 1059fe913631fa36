import { setTimeout } from 'node:timers/promises';
import type { GatewayMetrics, RedisClock } from '@millrace/shared';
import type { RequestHandler } from 'express';
import type { ModelDirectory } from '../inference/model-directory.js';
import type { QueueLoad } from '../inference/queue-load.js';
import { contextOf } from './context.js';
import { respond, timingsOf } from './respond.js';

/** A scrape sooner than this after the last, in ms, is answered without asking Redis again. */
const MEASURE_MS = 1000;
/** Longest wait for a Redis that hangs, in ms; the last readings are answered then. */
const PATIENCE_MS = 1000;

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
      const measured = directory.list().map(({ queue }) => load.measure(queue, clock.now()));
      await Promise.race([Promise.all(measured), setTimeout(PATIENCE_MS, undefined, { ref: false })]);
    }
    const body = await metrics.registry.metrics();
    const timings = timingsOf({}, contextOf(res).received, clock.now());
    respond(res, { status: 200, contentType: metrics.registry.contentType, body }, timings);
  };
}
