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

  /** The id of a job that has been done, or of one that can still be taken back. */
  async function keptJob(waits: boolean): Promise<string> {
    const notBefore = { 'millrace-not-before': new Date(Date.now() + 60_000).toISOString() };
    const accepted = await fetch(`${cluster.url}/v1/models/${MINILM}/predict`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        prefer: 'respond-async',
        ...(waits ? notBefore : {}),
      },
      body: JSON.stringify({ inputs: 'That is a happy person' }),
    });
    expect(accepted.status).to.equal(202);
    const predict = document.paths['/v1/models/{model}/predict']?.post as Operation;
    const job = accepted.headers.get('x-request-id') ?? '';
    expect(await reader.faultsOf(predict, accepted)).to.deep.equal([]);
    if (!waits) await fetch(`${cluster.url}/v1/jobs/${job}?wait=20`);
    return job;
  }

  /** The id of a file that was sent in. */
  async function storedFile(lines = '{}\n'): Promise<string> {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([lines]), 'lines.jsonl');
    const stored = await fetch(`${cluster.url}/v1/files`, { method: 'POST', body: form });
    expect(stored.status).to.equal(200);
    const { id } = (await stored.clone().json()) as { id: string };
    const upload = document.paths['/v1/files']?.post as Operation;
    expect(await reader.faultsOf(upload, stored)).to.deep.equal([]);
    return id;
  }

  /** The id of a batch that is paused, so that it can be turned any way. */
  async function pausedBatch(): Promise<string> {
    const line = JSON.stringify({ custom_id: '1', body: { model: MINILM, input: 'That is a happy person' } });
    const input_file_id = await storedFile(`${line}\n`.repeat(500));
    const made = await fetch(`${cluster.url}/v1/batches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input_file_id, endpoint: '/v1/embeddings', completion_window: '24h' }),
    });
    expect(made.status).to.equal(200);
    const { id } = (await made.clone().json()) as { id: string };
    const create = document.paths['/v1/batches']?.post as Operation;
    expect(await reader.faultsOf(create, made)).to.deep.equal([]);
    const paused = await fetch(`${cluster.url}/v1/batches/${id}/pause`, { method: 'POST' });
    expect(paused.status).to.equal(200);
    return id;
  }

  it('has examples that a server answers, as the schemas of the answers say', async () => {
    for (const documented of reader.operations()) {
      const { path, method, operation } = documented;
      const values: Record<string, string> = {
        ...(path.includes('{job}') ? { job: await keptJob(method === 'delete') } : {}),
        ...(path.includes('{file}') ? { file: await storedFile() } : {}),
        ...(path.includes('{batch}') ? { batch: await pausedBatch() } : {}),
      };
      for (const request of reader.requests(cluster.url, documented, values)) {
        const response = await fetch(request.url, { ...request.init, redirect: 'manual' });
        const where = `${operation.operationId}: ${response.status}`;
        expect(Object.keys(operation.responses), where).to.include(String(response.status));
        // The answers to load and unload, and what no model can do, are their refusal; the root leads elsewhere.
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
