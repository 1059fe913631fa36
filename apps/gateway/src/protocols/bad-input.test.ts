import { connect } from 'node:net';
import { BULL_PREFIX } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { Gateway } from '../gateway.js';
import type { BadRequest } from '../test-support/bad-requests/bad-request.js';
import { BODIES, NATIVE_TENSORS, NATIVE_TEXT } from '../test-support/bad-requests/native.js';
import { OPEN_TENSORS, OPEN_TEXT } from '../test-support/bad-requests/open-inference.js';
import { OPEN_BINARY } from '../test-support/bad-requests/open-inference-binary.js';
import {
  TEI_DECODE,
  TEI_EMBED,
  TEI_SIMILARITY,
  TEI_TOKENIZE,
} from '../test-support/bad-requests/text-embeddings-inference.js';
import { Harness, post } from '../test-support/harness.js';
import { identityModel, textModel } from '../test-support/models.js';
import { testRedis, uniqueName, until } from '../test-support/redis.js';
import { StandInWorker } from '../test-support/stand-in-worker.js';

describe('bad input', () => {
  const harness = new Harness();
  const text = uniqueName('bad-text');
  const identity = uniqueName('bad-identity');
  const queues: string[] = [];
  let gateway: Gateway;
  let redis: Redis;

  before(async () => {
    redis = testRedis();
    harness.onRelease(() => redis.disconnect());
    const operations = ['embed-tokens', 'tokenize', 'detokenize'] as const;
    for (const model of [textModel(text, { operations }), identityModel(identity)]) {
      // Announced, and not taken from: whatever is enqueued stays to be seen.
      const worker = new StandInWorker(model);
      await worker.announce();
      harness.onRelease(() => worker.stop());
      queues.push(worker.queue);
    }
    gateway = await harness.gateway({ maxBodyBytes: 200_000 });
  });
  after(() => harness.release());
  afterEach('nothing was enqueued', async () => {
    for (const queue of queues) {
      const added = await redis.get(`${BULL_PREFIX}:${queue}:id`);
      expect(added, 'jobs ever added').to.equal(null);
    }
  });

  const native = (path: () => string, rows: readonly BadRequest[]): void => {
    for (const row of rows) {
      it(`refuses ${row.name}`, async () => {
        const { status, headers, body } = await post(gateway.url + path(), row.body, row.headers);
        expect(status).to.equal(row.status);
        expect(headers.get('content-type')).to.equal('application/problem+json');
        expect(body).to.include({ status, field: row.field, requestId: headers.get('x-request-id') });
        if (row.code !== undefined) expect(body.code).to.equal(row.code);
        if (row.index !== undefined) expect(body.index).to.equal(row.index);
      });
    }
  };
  const openInference = (path: () => string, rows: readonly BadRequest[]): void => {
    for (const row of rows) {
      it(`refuses ${row.name}`, async () => {
        const { status, headers, body } = await post(gateway.url + path(), row.body, row.headers);
        expect(status).to.equal(row.status);
        expect(headers.get('content-type')).to.equal('application/json');
        expect(Object.keys(body)).to.deep.equal(['error']);
        expect(String(body.error).toLowerCase()).to.include(row.field.toLowerCase());
      });
    }
  };

  describe('at the native door', () => {
    native(() => `/v1/models/${text}/predict`, [...BODIES, ...NATIVE_TEXT]);
  });
  describe('at the native door, tensors', () => {
    native(() => `/v1/models/${identity}/predict`, NATIVE_TENSORS);
  });
  describe('at the Open Inference door', () => {
    openInference(() => `/v2/models/${identity}/infer`, [...BODIES, ...OPEN_TENSORS]);
  });
  describe('at the Open Inference door, tensors in bytes', () => {
    openInference(() => `/v2/models/${identity}/infer`, OPEN_BINARY);
  });
  describe('at the Open Inference door, texts', () => {
    openInference(() => `/v2/models/${text}/infer`, OPEN_TEXT);
  });

  const tei = (path: () => string, rows: readonly BadRequest[]): void => {
    for (const row of rows) {
      it(`refuses ${row.name}`, async () => {
        const { status, headers, body } = await post(gateway.url + path(), row.body, row.headers);
        expect(status).to.equal(row.status);
        expect(headers.get('content-type')).to.equal('application/json');
        expect(Object.keys(body)).to.deep.equal(['error', 'error_type']);
        expect(body.error_type).to.equal('Validation');
        expect(String(body.error).toLowerCase()).to.include(row.field.toLowerCase());
      });
    }
  };
  describe("at text-embeddings-inference's door", () => {
    const asValidation = BODIES.map((row) =>
      row.name === 'a body that is no object' ? { ...row, status: 413 } : row,
    );
    tei(() => `/models/${text}/embed`, [...asValidation, ...TEI_EMBED]);
  });
  describe("at text-embeddings-inference's door, similarity", () => {
    tei(() => `/models/${text}/similarity`, TEI_SIMILARITY);
  });
  describe("at text-embeddings-inference's door, tokens", () => {
    tei(() => `/models/${text}/tokenize`, TEI_TOKENIZE);
    tei(() => `/models/${text}/decode`, TEI_DECODE);
  });

  it('refuses a body over the limit that comes without a length', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      let received = '';
      const socket = connect(gateway.port, '127.0.0.1', () => {
        socket.write(
          `POST /v1/models/${text}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`,
        );
        socket.write('Transfer-Encoding: chunked\r\n\r\n');
        for (let i = 0; i < 30; i++) socket.write(`2710\r\n${'a'.repeat(10_000)}\r\n`);
      });
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        received += chunk.toString();
        if (received.includes('body_too_large')) {
          socket.destroy();
          resolve(received);
        }
      });
    });
    expect(answer).to.match(/^HTTP\/1\.1 413 /);
  });

  it('answers an unknown model, address and method in the shape of the door', async () => {
    const model = await post(`${gateway.url}/v2/models/nope/infer`, {});
    expect(model.status).to.equal(404);
    expect(model.body.error).to.include(text).and.include(identity);
    const address = await post(`${gateway.url}/v2/nope`, {});
    expect(address.status).to.equal(404);
    expect(Object.keys(address.body)).to.deep.equal(['error']);
    const native = await post(`${gateway.url}/v1/nope`, {});
    expect(native.body.code).to.equal('not_found');
    const method = await fetch(`${gateway.url}/v1/models/${text}/predict`, { method: 'PUT' });
    expect(method.status).to.equal(405);
    expect(method.headers.get('allow')).to.equal('POST, OPTIONS');
    const encoding = await post(`${gateway.url}/v1/models/%zz/predict`, {});
    expect(encoding.status).to.equal(400);
  });

  it('answers shortly to names that are long', async () => {
    const name = 'x'.repeat(100_000);
    const url = `${gateway.url}/v2/models/${identity}/infer`;
    const open = await post(url, { inputs: [{ name, shape: [1, 1], datatype: 'FP32', data: [1] }] });
    const native = await post(`${gateway.url}/v1/models/${identity}/predict`, { inputs: { [name]: [1] } });
    for (const { status, body } of [open, native]) {
      expect(status).to.equal(400);
      expect(JSON.stringify(body).length).to.be.below(1000);
    }
  });

  it('lets a client that goes away while sending go', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    socket.write(`POST /v1/models/${text}/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`);
    socket.write('Content-Length: 100\r\n\r\n{"inp');
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    await until('it is counted', async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return /millrace_requests_total{model=".*",door="native",status="499"} 1/.test(metrics);
    });
  });
});
