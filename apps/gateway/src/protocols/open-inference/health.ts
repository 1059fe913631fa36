import type { RedisClock } from '@millrace/shared';
import { Router } from 'express';
import { methodNotAllowed } from '../../http/errors.js';
import type { ReadinessCheck } from '../../http/health.js';
import { respondJson } from '../../http/respond.js';

/** `/v2/health/live` and `/v2/health/ready`: what orchestrators ask, without a key. */
export function healthRouter(clock: RedisClock, readiness: ReadinessCheck): Router {
  const router = Router();
  router
    .route('/v2/health/live')
    .get((_req, res) => respondJson(res, 200, { live: true }, clock.now()))
    .all(methodNotAllowed('GET'));
  router
    .route('/v2/health/ready')
    .get((_req, res) => {
      const { ready, reasons } = readiness();
      respondJson(res, ready ? 200 : 503, ready ? { ready } : { ready, reasons }, clock.now());
    })
    .all(methodNotAllowed('GET'));
  return router;
}
