import { createGzip, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Gateway } from '../gateway.js';
import { Harness, post } from '../test-support/harness.js';
import { identityModel } from '../test-support/models.js';
import { RawClient } from '../test-support/raw-client.js';
import { uniqueName, until } from '../test-support/redis.js';

const MIB = 1024 * 1024;
const MAX_BODY_BYTES = MIB;

describe('a compressed body', () => {
  const harness = new Harness();
  const model = uniqueName('coded');
  const body = Buffer.from(JSON.stringify({ inputs: { bytes: ['a'.repeat(1000)] } }));
  const path = `/v1/models/${model}/predict`;
  let gateway: Gateway;

  before(async () => {
    await harness.worker(identityModel(model));
    gateway = await harness.gateway({ maxBodyBytes: MAX_BODY_BYTES, maxQueuedBytes: 4 * MIB });
  });
  after(() => harness.release());

  const send = (bytes: Uint8Array, coding: string) =>
    post(`${gateway.url}${path}`, bytes, { 'content-encoding': coding });

  for (const [what, coding, bytes] of [
    ['in gzip', 'gzip', gzipSync(body)],
    [
      'in gzip of two members',
      'GZIP',
      Buffer.concat([gzipSync(body.subarray(0, 9)), gzipSync(body.subarray(9))]),
    ],
    ['in gzip by its old name', 'x-gzip', gzipSync(body)],
    ['in deflate', 'deflate', deflateSync(body)],
    ['in deflate without the frame of zlib', 'deflate', deflateRawSync(body)],
    ['that says it is not', 'identity', body],
  ] as const) {
    it(`is read: ${what}`, async () => {
      const answer = await send(bytes, coding);
      expect(answer.status).to.equal(200);
      expect(answer.body.outputs).to.deep.equal([{ bytes_out: ['a'.repeat(1000)] }]);
    });
  }

  it('is read at the Open Inference Protocol’s door too', async () => {
    const tensors = { inputs: [{ name: 'bytes', datatype: 'BYTES', shape: [1, 1], data: ['a'] }] };
    const answer = await post(`${gateway.url}/v2/models/${model}/infer`, gzipSync(JSON.stringify(tensors)), {
      'content-encoding': 'gzip',
    });
    expect(answer.status).to.equal(200);
  });

  for (const [what, coding, bytes] of [
    ['that is cut short', 'gzip', gzipSync(body).subarray(0, -9)],
    ['that is cut short', 'deflate', deflateSync(body).subarray(0, -3)],
    ['whose checksum is wrong', 'gzip', flipped(gzipSync(body), -5)],
    ['that is none', 'gzip', body],
    ['that is none', 'deflate', Buffer.from([0xff, 0xff, 0xff])],
    ['that is empty', 'gzip', Buffer.alloc(0)],
    ['with more behind it', 'gzip', Buffer.concat([gzipSync(body), Buffer.from('more')])],
    ['with zeros behind it', 'gzip', Buffer.concat([gzipSync(body), Buffer.alloc(100_000)])],
    ['with more behind it', 'deflate', Buffer.concat([deflateSync(body), Buffer.alloc(500_000, 'x')])],
  ] as const) {
    it(`in ${coding} ${what} is a 400 that says so`, async () => {
      const answer = await send(bytes, coding);
      expect(answer.status).to.equal(400);
      expect(answer.body).to.include({ code: 'invalid_encoding', field: 'body' });
      expect(answer.body.detail).to.include(`not valid ${coding}`);
    });
  }

  for (const coding of ['br', 'zstd', 'compress', 'gzip, gzip', 'constructor', 'gzip;q=1']) {
    it(`in ${coding} is a 415 with what could be sent`, async () => {
      const { status, headers, body: problem } = await send(body, coding);
      expect(status).to.equal(415);
      expect(headers.get('accept-encoding')).to.equal('gzip, deflate');
      expect(problem).to.include({ code: 'unsupported_media_type', field: 'Content-Encoding' });
    });
  }

  it('that would be too large is refused before it is, in little memory', async () => {
    const bomb = await zeros(2048);
    expect(bomb.byteLength)
      .to.be.above(MIB)
      .and.below(3 * MIB);
    const wide = await harness.gateway({ maxBodyBytes: 4 * MIB });
    const before = process.memoryUsage().rss;
    const started = performance.now();
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => post(`${wide.url}${path}`, bomb, { 'content-encoding': 'gzip' })),
    );
    for (const { status, body: problem } of answers) {
      expect(status).to.equal(413);
      expect(problem.code).to.equal('body_too_large');
    }
    expect(performance.now() - started).to.be.below(2000);
    expect(process.memoryUsage().rss - before).to.be.below(200 * MIB);
  });

  it('that says nothing in many bytes is refused', async () => {
    const empty = gzipSync('');
    const client = new RawClient(gateway).say(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        'Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
    );
    const many = Buffer.concat(Array.from({ length: 2000 }, () => empty)).toString('latin1');
    const chunk = `${many.length.toString(16)}\r\n${many}\r\n`;
    for (let sent = 0; sent <= MAX_BODY_BYTES; sent += many.length) client.say(chunk);
    client.say('0\r\n\r\n');
    await client.closed;
    expect(client.statuses).to.deep.equal([413]);
  });

  it('counts by what it is without compression among the bodies that are being sent', async () => {
    const tight = await harness.gateway({ maxBodyBytes: MIB, maxQueuedBytes: 600_000 });
    const half = gzipSync(Buffer.alloc(400_000, ' '), { finishFlush: 2 }).toString('latin1');
    const head =
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n` +
      `Content-Length: ${half.length + 1}\r\n\r\n`;
    const clients = [new RawClient(tight).say(head + half), new RawClient(tight).say(head + half)];
    await until('one of them is refused', () => clients.flatMap(({ statuses }) => statuses).length === 1);
    expect(clients.flatMap(({ statuses }) => statuses)).to.deep.equal([429]);
    for (const { socket } of clients) socket.destroy();
    await until('what went away holds nothing', async () => {
      const whole = gzipSync(Buffer.alloc(500_000, ' '));
      const { status } = await post(`${tight.url}${path}`, whole, { 'content-encoding': 'gzip' });
      return status === 400;
    });
  });

  it('leaves its connection usable, whatever it was', async () => {
    const broken = gzipSync(body).subarray(0, -1);
    const one = (bytes: Buffer): string =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n` +
      `Content-Length: ${bytes.length}\r\n\r\n${bytes.toString('latin1')}`;
    const garbage = Buffer.concat([gzipSync(body), Buffer.alloc(300_000, 'x')]);
    const client = new RawClient(gateway).say(one(broken) + one(garbage) + one(gzipSync(body)));
    await until('all are answered', () => client.statuses.length === 3);
    expect(client.statuses).to.deep.equal([400, 400, 200]);
    client.socket.destroy();
  });
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = copy.length + at;
  copy[index] = (copy[index] ?? 0) ^ 0xff;
  return copy;
}

/** So many MiB of zeros in gzip. */
async function zeros(mib: number): Promise<Buffer> {
  const gzip = createGzip({ level: 9 });
  const chunks: Buffer[] = [];
  gzip.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => gzip.once('end', resolve));
  const piece = Buffer.alloc(MIB);
  for (let i = 0; i < mib; i++) {
    if (!gzip.write(piece)) await new Promise((resolve) => gzip.once('drain', resolve));
  }
  gzip.end();
  await ended;
  return Buffer.concat(chunks);
}
