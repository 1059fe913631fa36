import { expect } from 'chai';
import { type Document, OpenApiReader, type Operation } from '#gateway/test-support/openapi.js';
import { Cluster } from './support/cluster.js';
import { MINILM } from './support/minilm.js';

describe('the OpenAPI document, beside a real server', () => {
  let cluster: Cluster;
  let document: Document;
  let reader: OpenApiReader;

  before(async () => {
    cluster = await Cluster.start({ models: [MINILM, 'identity'] });
    document = (await (await fetch(`${cluster.url}/openapi.json`)).json()) as Document;
    reader = new OpenApiReader(document);
  });
  after(() => cluster?.stop());

  it('has examples that a server answers, as the schemas of the answers say', async () => {
    for (const { method, path, operation } of reader.operations()) {
      for (const request of reader.requests(cluster.url, method, path, operation)) {
        const response = await fetch(request.url, { ...request.init, redirect: 'manual' });
        const where = `${operation.operationId}: ${response.status}`;
        expect(Object.keys(operation.responses), where).to.include(String(response.status));
        // The answers to load and unload are their refusal.
        if (Object.keys(operation.responses).some((status) => status.startsWith('2'))) {
          expect(response.status, where).to.equal(200);
        }
        expect(await reader.faultsOf(operation, response), where).to.deep.equal([]);
      }
    }
  });

  it("has every door's errors as they are answered", async () => {
    const bad: [path: string, init: RequestInit][] = [
      ['/v1/models/{model}/predict', { body: '{' }],
      ['/v1/models/{model}/predict', { body: '{"inputs": []}' }],
      ['/v1/models/{model}/predict', { body: '{"inputs": "a"}', headers: { 'content-type': 'text/plain' } }],
      ['/v2/models/{model}/infer', { body: '{"inputs": []}' }],
      ['/v2/models/{model}/infer', { body: 'x'.repeat(10_000_000) }],
    ];
    for (const [path, init] of bad) {
      const operation = document.paths[path]?.post as Operation;
      const response = await fetch(cluster.url + path.replace('{model}', MINILM), {
        method: 'POST',
        ...init,
        headers: { 'content-type': 'application/json', ...init.headers },
      });
      expect(response.status).to.be.within(400, 499);
      expect(await reader.faultsOf(operation, response), path).to.deep.equal([]);
    }
    const none = await fetch(`${cluster.url}/v2/models/none`);
    expect(none.status).to.equal(404);
    const { get } = document.paths['/v2/models/{model}'] as Record<string, Operation>;
    expect(await reader.faultsOf(get as Operation, none)).to.deep.equal([]);
  });
});
