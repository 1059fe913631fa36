import { z } from 'zod';
import type { DoorApi } from '../protocols/api-description.js';
import { operationsErrors } from '../protocols/door-of.js';
import { problemSchema } from '../protocols/native/schema.js';

const liveSchema = z.strictObject({ live: z.literal(true) }).meta({ id: 'Live' });
const readySchema = z.strictObject({ ready: z.literal(true) }).meta({ id: 'Ready' });
const notReadySchema = z
  .strictObject({ ready: z.literal(false), reasons: z.array(z.string()).min(1) })
  .meta({ id: 'NotReady' });

/** What orchestrators and operators ask. @param metricsOpen whether metrics are shown without a key. */
export function operationsApi(metricsOpen: boolean): DoorApi {
  return {
    title: 'Operations',
    description: 'For orchestrators and monitoring. Health needs no key.',
    errors: operationsErrors,
    errorSchema: problemSchema,
    operations: [
      {
        id: 'live',
        method: 'get',
        path: '/v2/health/live',
        summary: 'Ask whether the process answers',
        open: true,
        responses: {
          200: {
            description: 'It does.',
            contents: [
              {
                contentType: 'application/json',
                schema: liveSchema,
                examples: { live: { summary: 'live', value: { live: true } } },
              },
            ],
          },
        },
      },
      {
        id: 'ready',
        method: 'get',
        path: '/v2/health/ready',
        summary: 'Ask whether this gateway should be sent requests',
        open: true,
        responses: {
          200: {
            description: 'Redis answers, and every configured model is served.',
            contents: [
              {
                contentType: 'application/json',
                schema: readySchema,
                examples: { ready: { summary: 'ready', value: { ready: true } } },
              },
            ],
          },
          503: {
            description: 'Not now, and why.',
            contents: [
              {
                contentType: 'application/json',
                schema: notReadySchema,
                examples: {
                  starting: {
                    summary: 'A worker is still to come',
                    value: { ready: false, reasons: ['no worker serves all-minilm-l6-v2'] },
                  },
                },
              },
            ],
          },
        },
      },
      {
        id: 'metrics',
        method: 'get',
        path: '/metrics',
        summary: 'Read the metrics of this gateway',
        open: metricsOpen,
        responses: {
          200: {
            description: 'Metrics as Prometheus reads them.',
            contents: [{ contentType: 'text/plain', schema: z.string().meta({ id: 'Metrics' }) }],
          },
        },
      },
    ],
  };
}
