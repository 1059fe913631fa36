import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import type { Router } from 'express';
import { ApiKeys } from '../admission/api-keys.js';
import type { Gateway } from '../gateway.js';
import { type AppOptions, createApp } from '../http/app.js';
import type { BatchDoorParts } from '../protocols/batches/router.js';
import { doorOf } from '../protocols/door-of.js';
import type { DoorParts } from '../protocols/door-parts.js';
import { protocolDoors } from '../protocols/doors.js';
import type { FilesDoorParts } from '../protocols/files/router.js';
import type { JobsParts } from '../protocols/jobs/router.js';
import { healthRouter } from '../protocols/open-inference/health.js';
import { Harness } from '../test-support/harness.js';
import { identityModel, textModel } from '../test-support/models.js';
import { type Content, type Document, OpenApiReader } from '../test-support/openapi.js';
import { apisOf, documentation, documentOf } from './documentation.js';
import { pathsOf } from './paths.js';

/** Routers alone: they only register their routes, and none is asked. */
const keyed = (): void => undefined;
const DOORS = protocolDoors(
  { settings: {}, keyed } as unknown as DoorParts,
  { keyed } as unknown as JobsParts,
  { keyed } as unknown as FilesDoorParts,
  { keyed, keyedToInfer: keyed } as unknown as BatchDoorParts,
);

function generated(keyed: boolean): Document {
  return JSON.parse(JSON.stringify(documentOf(DOORS, { keyed, metricsOpen: true }))) as Document;
}

interface Layer {
  route?: { path: string | string[]; stack: { method?: string }[] };
  handle: { stack?: Layer[] };
}

/** `get /v1/models/{model}` for everything that a router and those mounted in it answer. */
function routesOf(router: Router): string[] {
  return (router.stack as unknown as Layer[]).flatMap(({ route, handle }) => {
    if (!route) return handle.stack ? routesOf(handle as unknown as Router) : [];
    const methods = new Set(route.stack.flatMap(({ method }) => method ?? []));
    const paths = [route.path].flat().flatMap(pathsOf);
    return paths.flatMap(({ path }) => [...methods].map((method) => `${method} ${path}`));
  });
}

describe('the OpenAPI document', () => {
  const harness = new Harness();
  const text = textModel('all-minilm-l6-v2');
  const identity = identityModel('identity');
  let gateway: Gateway;
  let document: Document;
  let reader: OpenApiReader;

  before(async () => {
    await harness.worker(text);
    await harness.worker(identity);
    gateway = await harness.gateway({ models: [text.name, identity.name] });
    document = generated(false);
    reader = new OpenApiReader(document);
  });
  after(() => harness.release());

  it('is served as it is generated', async () => {
    const response = await fetch(`${gateway.url}/openapi.json`);
    expect(response.headers.get('content-type')).to.equal('application/json');
    expect(await response.json()).to.deep.equal(document);
  });

  it('has every route of the app, and no other', () => {
    const app = createApp({
      clock: {},
      corsOrigins: [],
      keys: new ApiKeys([]),
      health: healthRouter({} as never, () => ({ ready: true, reasons: [] })),
      documentation: documentation({} as never, DOORS, { keyed: false, metricsOpen: true }),
      // A site of its own, for people.
      dashboard: { path: '/dashboard', router: Object.assign(() => undefined, {}) as never },
      metricsRoute: () => undefined,
      metricsOpen: true,
      doors: DOORS.map(({ router }) => router),
    } as unknown as AppOptions);
    const documented = reader.operations().map(({ method, path }) => `${method} ${path}`);
    // Where two doors share an address, one of them hands on what is the other's.
    const routes = new Set(routesOf(app.router as unknown as Router));
    expect([...routes].sort()).to.deep.equal(documented.sort());
  });

  for (const keyed of [false, true]) {
    it(`passes the linter, ${keyed ? 'with' : 'without'} API keys`, async () => {
      const config = await createConfig({
        extends: ['recommended-strict'],
        rules: {
          // Without keys there is no security to speak of.
          ...(keyed ? {} : { 'security-defined': 'off' }),
          // Loading and unloading are always refused, and the root leads elsewhere.
          'operation-2xx-response': 'off',
          'no-invalid-media-type-examples': 'error',
          'no-unused-components': 'error',
          'operation-description': 'off',
        },
      });
      const problems = await lintFromString({
        source: JSON.stringify(generated(keyed)),
        absoluteRef: 'openapi.json',
        config,
      });
      expect(
        problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
      ).to.deep.equal([]);
    });
  }

  it('asks for keys where keys are asked for, but for what is open', () => {
    const open = new OpenApiReader(generated(true))
      .operations()
      .flatMap(({ path, operation }) => (operation.security?.length === 0 ? path : []));
    expect(open).to.have.members([
      '/',
      '/health',
      '/v2/health/live',
      '/v2/health/ready',
      '/metrics',
      '/openapi.json',
      '/docs',
      '/docs/assets/{asset}',
    ]);
    expect(JSON.stringify(document)).not.to.match(/securitySchemes|unauthorized: /);
  });

  it('has examples that fit their schemas', () => {
    let checked = 0;
    const check = (where: string, content: Record<string, Content> = {}): void => {
      for (const [type, { schema, examples = {} }] of Object.entries(content)) {
        for (const [name, { value }] of Object.entries(examples)) {
          checked += 1;
          expect(reader.faults(schema, value), `${where} ${type} ${name}`).to.deep.equal([]);
        }
      }
    };
    for (const { operation } of reader.operations()) {
      const { operationId, requestBody, responses } = operation;
      check(`${operationId} request`, requestBody?.content);
      for (const [status, response] of Object.entries(responses)) {
        check(`${operationId} ${status}`, reader.resolve(response).content);
      }
    }
    expect(checked).to.be.greaterThan(100);
  });

  it('tells the errors that an address answers with', () => {
    for (const { errors, operations } of apisOf(DOORS, true)) {
      for (const { path } of operations) {
        for (const at of pathsOf(path)) expect(doorOf(at.path).render, at.path).to.equal(errors.render);
      }
    }
  });
});

describe('the addresses of an Express path', () => {
  it('are those with and without its optional parts', () => {
    expect(pathsOf('/v1/models')).to.deep.equal([{ path: '/v1/models', parameters: [], suffix: '' }]);
    expect(pathsOf('/m/:model{/versions/:version}/x')).to.deep.equal([
      { path: '/m/{model}/x', parameters: ['model'], suffix: '' },
      { path: '/m/{model}/versions/{version}/x', parameters: ['model', 'version'], suffix: 'Version' },
    ]);
  });
});
