import { request } from 'node:http';
import { gunzipSync, inflateSync } from 'node:zlib';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness } from '../test-support/harness.js';
import { identityModel } from '../test-support/models.js';
import { uniqueName } from '../test-support/redis.js';
import { chooseCoding } from './compression.js';

interface Heard {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
}

/** A client that decodes nothing by itself, and sends no header of its own will. */
function ask(url: string, headers: Record<string, string>, body?: string): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    asked.on('error', reject).end(body);
  });
}

describe('what a client accepts', () => {
  for (const [header, coding, required] of [
    ['gzip', 'gzip', false],
    ['deflate', 'deflate', false],
    ['gzip, deflate, br', 'gzip', false],
    ['deflate, gzip', 'gzip', false],
    ['deflate;q=1, gzip;q=0.5', 'deflate', false],
    ['X-GZIP', 'gzip', false],
    ['*', 'gzip', false],
    ['gzip;q=0, *', 'deflate', false],
    ['br', undefined, false],
    ['', undefined, false],
    ['gzip;q=0', undefined, false],
    ['gzip;q=0.000', undefined, false],
    ['identity, gzip;q=0.5', undefined, false],
    ['identity;q=0.1, gzip;q=0.5', 'gzip', false],
    ['identity;q=0, gzip', 'gzip', true],
    ['gzip, *;q=0', 'gzip', true],
    ['identity;q=0', undefined, true],
    ['*;q=0', undefined, true],
    ['identity, *;q=0', undefined, false],
    ['gzip;q=high', undefined, false],
    ['gzip ; q=0.5 , deflate;q=0.6', 'deflate', false],
    [',,;;=,gzip;', 'gzip', false],
  ] as const) {
    it(`is ${coding ?? 'no coding of ours'} by "${header}"`, () => {
      expect(chooseCoding(header)).to.deep.equal({ coding, required });
    });
  }
});

describe('an answer', () => {
  const harness = new Harness();
  const model = uniqueName('coded-answer');
  const long = JSON.stringify({ inputs: { bytes: ['abcdefgh'.repeat(200)] } });
  const short = JSON.stringify({ inputs: { bytes: ['a'] } });
  const json = { 'content-type': 'application/json' };
  let usual: Gateway;
  let compressing: Gateway;
  const predict = (gateway: Gateway, headers: Record<string, string>, body = long): Promise<Heard> =>
    ask(`${gateway.url}/v1/models/${model}/predict`, { ...json, ...headers }, body);

  before(async () => {
    await harness.worker(identityModel(model));
    usual = await harness.gateway();
    compressing = await harness.gateway({ compressFromBytes: 1500 });
  });
  after(() => harness.release());

  it('is compressed from the size that is set, in what the client accepts', async () => {
    for (const [accepted, coding, decode] of [
      ['gzip, deflate', 'gzip', gunzipSync],
      ['deflate', 'deflate', inflateSync],
    ] as const) {
      const { headers, bytes } = await predict(compressing, { 'accept-encoding': accepted });
      expect(headers['content-encoding']).to.equal(coding);
      expect(headers.vary).to.equal('Accept-Encoding');
      expect(Number(headers['content-length'])).to.equal(bytes.length);
      expect(JSON.parse(decode(bytes).toString()).outputs).to.deep.equal([
        { bytes_out: ['abcdefgh'.repeat(200)] },
      ]);
    }
  });

  it('is as it is for a client that accepts no coding, and says that it could be another', async () => {
    const refusals: Record<string, string>[] = [
      {},
      { 'accept-encoding': 'identity' },
      { 'accept-encoding': 'br' },
    ];
    for (const headers of refusals) {
      const heard = await predict(compressing, headers);
      expect(heard.headers['content-encoding']).to.equal(undefined);
      expect(heard.headers.vary).to.equal('Accept-Encoding');
      expect(JSON.parse(heard.bytes.toString())).to.have.property('outputs');
    }
  });

  it('is as it is below that size', async () => {
    const { headers } = await predict(compressing, { 'accept-encoding': 'gzip' }, short);
    expect(headers['content-encoding']).to.equal(undefined);
    expect(headers.vary).to.equal(undefined);
  });

  it('is not compressed by default, unless the client takes no other', async () => {
    const asUsual = await predict(usual, { 'accept-encoding': 'gzip, deflate, br' });
    expect(asUsual.headers['content-encoding']).to.equal(undefined);
    const demanded = await predict(usual, { 'accept-encoding': 'gzip, identity;q=0' }, short);
    expect(demanded.headers['content-encoding']).to.equal('gzip');
    expect(JSON.parse(gunzipSync(demanded.bytes).toString())).to.have.property('outputs');
    const impossible = await predict(usual, { 'accept-encoding': 'br, identity;q=0' });
    expect([impossible.status, impossible.headers['content-encoding']]).to.deep.equal([200, undefined]);
  });

  it('is compressed when it is an error or text too', async () => {
    const problem = await ask(`${usual.url}/nowhere`, { 'accept-encoding': 'gzip, *;q=0' });
    expect(problem.status).to.equal(404);
    expect(JSON.parse(gunzipSync(problem.bytes).toString())).to.have.property('code', 'not_found');
    const metrics = await ask(`${compressing.url}/metrics`, { 'accept-encoding': 'gzip' });
    expect(gunzipSync(metrics.bytes).toString()).to.include('millrace_requests_total');
  });

  it('is whole for fetch, which asks for compression by itself', async () => {
    const response = await fetch(`${compressing.url}/v1/models/${model}/predict`, {
      method: 'POST',
      headers: json,
      body: long,
    });
    expect(response.headers.get('content-encoding')).to.equal('gzip');
    expect(await response.json()).to.have.property('outputs');
  });
});
