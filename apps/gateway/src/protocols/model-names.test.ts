import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { textModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { uniqueName } from '../test-support/redis.js';

/** As they stand in a path; %2e and %2f are a dot and a slash to whoever decodes them. */
const NAMES = [
  '..',
  '%2e%2e',
  '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  '..%2f..%2fidentity',
  '%2fetc%2fpasswd',
  '..%5c..%5cidentity',
  '%00',
  'identity%00',
  'C:%5cmodels',
  '%c0%ae%c0%ae',
  '__proto__',
  'constructor',
  '%7b%7d',
  '*',
];

describe('a model name that tries to leave its place', () => {
  const harness = new Harness();
  const model = uniqueName('place');
  let gateway: Gateway;
  before(async () => {
    await harness.worker(textModel(model));
    gateway = await harness.gateway({ models: [model] });
  });
  after(() => harness.release());

  for (const name of NAMES) {
    it(`names nothing: ${name}`, async () => {
      const body = '{"inputs":"a"}';
      const tail = `HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: `;
      for (const request of [
        `POST /v1/models/${name}/predict ${tail}${body.length}\r\n\r\n${body}`,
        `POST /v2/models/${name}/infer ${tail}${body.length}\r\n\r\n${body}`,
        `POST /v1/models/${model}/versions/${name}/predict ${tail}${body.length}\r\n\r\n${body}`,
        `GET /v2/models/${name} ${tail}0\r\n\r\n`,
        `GET /v1/models/${name} ${tail}0\r\n\r\n`,
      ]) {
        // As bytes: a client of the usual kind would resolve the dots itself.
        const client = new RawClient(gateway).say(request);
        await client.closed;
        expect(client.statuses[0], request).to.be.oneOf([400, 404]);
        expect(client.heard, request).to.match(/\r\nContent-Type: application\/(problem\+)?json\r\n/);
      }
    });
  }
});
