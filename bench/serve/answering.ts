import type { AddressInfo } from 'node:net';
import { createLogger, gatewayMetrics, loadSettings, RedisClock, type Tensor } from '@millrace/shared';
import express, { Router } from 'express';
import { ApiKeys } from '#gateway/admission/api-keys.js';
import { authenticate, createApp } from '#gateway/http/app.js';
import { ArrivingBodies } from '#gateway/http/arriving-bodies.js';
import { BodyBytes } from '#gateway/http/body.js';
import { Compression } from '#gateway/http/compression.js';
import { GatewayState } from '#gateway/http/health.js';
import { listen, portOf } from '#gateway/http/server.js';
import { UnreadAnswers } from '#gateway/http/unread-answers.js';
import type { Idempotency } from '#gateway/idempotency/idempotency.js';
import type { ModelDirectory } from '#gateway/inference/model-directory.js';
import { StatisticsBook } from '#gateway/inference/model-statistics.js';
import type { InferRequest, InferResult } from '#gateway/inference/request.js';
import type { DurableRequests } from '#gateway/jobs/durable.js';
import { answeringOnce } from '#gateway/protocols/answer-once.js';
import { answering } from '#gateway/protocols/answering.js';
import { doorOf } from '#gateway/protocols/door-of.js';
import type { DoorParts } from '#gateway/protocols/door-parts.js';
import { nativeRouter } from '#gateway/protocols/native/router.js';
import { OpenStreams } from '#gateway/protocols/open-streams.js';
import { Writers } from '#gateway/protocols/writers.js';
import { IDENTITY, IDENTITY_ANSWER } from './identity.js';

/** Servers with an answer at hand: what a door costs by itself. Both resolve with their port. */

/** The gateway's own middleware and native door; only `infer` is another: the identity model's answer, at once. */
export async function readyGateway(): Promise<number> {
  const settings = loadSettings({}, { port: 0, logLevel: 'error' });
  const clock = new RedisClock();
  const keys = new ApiKeys([]);
  const metrics = gatewayMetrics();
  const logger = createLogger('error', { process: 'ready-gateway' });
  const state = new GatewayState();
  const infer = async (request: InferRequest): Promise<InferResult> => readyResult(request);
  const doors: DoorParts = {
    clock,
    metrics,
    logger,
    state,
    infer,
    streams: new OpenStreams(),
    settings,
    statistics: new StatisticsBook(),
    bodies: new BodyBytes(settings.maxQueuedBytes),
    keyed: authenticate(keys),
    faults: () => [],
    // The bench names none of its requests, and has none kept.
    answer: answering(
      answeringOnce({
        infer,
        durable: {} as DurableRequests,
        writers: new Writers(),
        idempotency: {} as Idempotency,
        clock,
      }),
    ),
    // The door asks its directory for nothing else.
    directory: { resolve: () => IDENTITY } as unknown as ModelDirectory,
  };
  const app = createApp({
    clock,
    logger,
    metrics,
    state,
    sending: {
      compression: new Compression(settings.compressFromBytes),
      unread: new UnreadAnswers(settings.maxUnreadBytes, metrics),
    },
    corsOrigins: settings.corsOrigins,
    keys,
    doorOf,
    health: Router(),
    documentation: Router(),
    dashboard: { path: '/dashboard', router: Router() },
    metricsRoute: (_req, res) => void res.end(),
    metricsOpen: true,
    doors: [nativeRouter(doors)],
  });
  const door = doorOf('/');
  const arriving = new ArrivingBodies(settings.requestTimeoutMs, door);
  return portOf(await listen(app, door, settings, arriving));
}

function readyResult({ requestId, inputs, stamps }: InferRequest): InferResult {
  const input = inputs.find(({ name }) => name === 'fp32') as Tensor;
  return {
    requestId,
    model: IDENTITY,
    items: [{ status: 'ok' }],
    outputs: [
      {
        name: 'fp32_out',
        datatype: 'FP32',
        itemShape: input.shape.slice(1),
        items: [new Uint8Array(input.data)],
      },
    ],
    stamps,
    workers: [],
    truncated: [],
    tokens: 0,
  };
}

/** What anyone would write first: parse the body, send the answer. */
export async function bareExpress(): Promise<number> {
  const app = express();
  app.use(express.json());
  app.post('/v1/models/:model/predict', (req, res) => {
    if (req.body.inputs === undefined) res.status(400).json({ error: 'no inputs' });
    else res.json(IDENTITY_ANSWER);
  });
  return await new Promise((resolve, reject) => {
    const server = app.listen(0, '127.0.0.1', (error?: Error) => {
      if (error) reject(error);
      else resolve((server.address() as AddressInfo).port);
    });
  });
}
