import { randomBytes } from 'node:crypto';
import { rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  END,
  FILE,
  type FileBody,
  FilesDoor,
  formOf,
  LINES,
  PURPOSE,
  part,
} from '../../test-support/files-door.js';
import { RawClient } from '../../test-support/raw-client.js';
import { until } from '../../test-support/redis.js';

const MIB = 1024 * 1024;

describe('the door of files, where they are read', () => {
  const door = new FilesDoor();
  const { alice, as, content, send } = door;
  before(() => door.open());
  after(() => door.close());

  describe('gives the bytes of a file', () => {
    const bytes = randomBytes(MIB);
    let id: string;
    let etag: string;
    before(async () => {
      const form = new FormData();
      form.set('purpose', 'batch');
      form.set('file', new Blob([bytes]), 'random.bin');
      const init = { method: 'POST', headers: as(alice), body: form };
      ({ id } = (await (await fetch(`${door.gateway.url}/v1/files`, init)).json()) as FileBody);
      etag = (await content(id)).headers.get('etag') ?? '';
    });

    it('whole, to be saved and not shown', async () => {
      const whole = await content(id);
      expect(whole.status).to.equal(200);
      expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).to.equal(true);
      expect(Object.fromEntries(whole.headers)).to.include({
        'content-length': String(MIB),
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment; filename=random.bin',
        'accept-ranges': 'bytes',
        'x-content-type-options': 'nosniff',
      });
      expect(whole.headers.get('server-timing')).to.include('total');
    });

    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=100-299', 100, 300],
      ['bytes=1048000-', 1_048_000, MIB],
      ['bytes=-100', MIB - 100, MIB],
      ['bytes=-99999999', 0, MIB],
      ['bytes=1048570-99999999', 1_048_570, MIB],
    ] as const) {
      it(`in part: ${range}`, async () => {
        const answer = await content(id, { range, 'accept-encoding': 'gzip' });
        expect(answer.status).to.equal(206);
        expect(answer.headers.get('content-range')).to.equal(`bytes ${start}-${end - 1}/${MIB}`);
        expect(answer.headers.get('content-length')).to.equal(String(end - start));
        expect(answer.headers.get('content-encoding')).to.equal(null);
        expect(Buffer.from(await answer.arrayBuffer()).equals(bytes.subarray(start, end))).to.equal(true);
      });
    }

    it('whole, where what is asked for is no range', async () => {
      for (const range of ['bytes=5-3', 'bytes=0-1,5-6', 'items=0-1', 'bytes=-', 'bytes=a-b', '']) {
        const answer = await content(id, { range });
        expect(answer.status, range).to.equal(200);
        expect((await answer.arrayBuffer()).byteLength).to.equal(MIB);
      }
    });

    it('not at all, where there are none', async () => {
      for (const range of [`bytes=${MIB}-`, 'bytes=9999999-9999999', 'bytes=-0']) {
        const answer = await content(id, { range });
        expect(answer.status, range).to.equal(416);
        expect(answer.headers.get('content-range')).to.equal(`bytes */${MIB}`);
        expect(await answer.json()).to.have.nested.property('error.code', 'range_not_satisfiable');
      }
    });

    it('in part only if it is still the same', async () => {
      const range = 'bytes=0-9';
      expect((await content(id, { range, 'if-range': etag })).status).to.equal(206);
      for (const other of ['"another"', `W/${etag}`, new Date().toUTCString()]) {
        const answer = await content(id, { range, 'if-range': other });
        expect(answer.status, other).to.equal(200);
        expect((await answer.arrayBuffer()).byteLength).to.equal(MIB);
      }
    });

    it('never twice to who has them', async () => {
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const answer = await content(id, { 'if-none-match': known });
        expect(answer.status).to.equal(304);
        expect(answer.headers.get('etag')).to.equal(etag);
      }
      expect((await content(id, { 'if-none-match': '"x"' })).status).to.equal(200);
    });

    it('by HEAD without them', async () => {
      const head = await content(id, {}, 'HEAD');
      expect(head.status).to.equal(200);
      expect(head.headers.get('content-length')).to.equal(String(MIB));
      expect(await head.text()).to.equal('');
      const range = await content(id, { range: 'bytes=0-9' }, 'HEAD');
      expect(range.status).to.equal(206);
      expect(range.headers.get('content-length')).to.equal('10');
    });

    it('compressed for who accepts that, where answers are', async () => {
      const { body } = await send(PURPOSE + FILE + END);
      const url = `/v1/files/${body.id}/content`;
      const client = new RawClient(door.gateway);
      client.say(
        `GET ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`,
      );
      await client.closed;
      const [head = '', ...rest] = client.heard.split('\r\n\r\n');
      expect(head).to.match(/^content-encoding: gzip$/im);
      expect(head).to.match(/^vary: accept-encoding$/im);
      expect(head).to.match(/^etag: "[^"]*-gzip"$/im);
      expect(head).to.not.match(/^content-length/im);
      expect(rest.join('\r\n\r\n').length).to.be.below(LINES.length / 5);
      const decoded = await content(body.id, { 'accept-encoding': 'gzip' });
      expect(await decoded.text()).to.equal(LINES);
      const deflated = await content(body.id, { 'accept-encoding': 'deflate' });
      expect(await deflated.text()).to.equal(LINES);
      const plain = await content(body.id);
      expect(plain.headers.get('content-encoding')).to.equal(null);
      expect(plain.headers.get('vary')).to.equal('Accept-Encoding');
    });

    it('without any, of an empty file', async () => {
      const { body } = await send(PURPOSE + part('file', '', 'empty.jsonl') + END);
      expect(body.bytes).to.equal(0);
      const answer = await content(body.id, { 'accept-encoding': 'gzip' });
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('content-length')).to.equal('0');
      expect(await answer.text()).to.equal('');
      expect((await content(body.id, { range: 'bytes=0-0' })).status).to.equal(416);
    });

    it('or breaks off, where some of them are lost, rather than seem whole', async () => {
      const { body } = await send(PURPOSE + FILE + END);
      await truncate(join(door.folder, 'files', 'files', body.id, '000000'), LINES.length / 2);
      for (const accept of ['identity', 'gzip']) {
        const outcome = await content(body.id, { 'accept-encoding': accept })
          .then((answer) => answer.arrayBuffer())
          .then(
            () => 'whole',
            () => 'broken off',
          );
        expect(outcome, accept).to.equal('broken off');
      }
    });

    it('or an error, where the storage has lost them', async () => {
      const { body } = await send(PURPOSE + FILE + END);
      await rm(join(door.folder, 'files', 'files', body.id), { recursive: true });
      const answer = await content(body.id);
      expect(answer.status).to.equal(404);
      expect(await answer.json()).to.have.nested.property('error.code', 'file_not_found');
    });
  });

  it('waits for a client that reads late, counts it to no answers that wait, and cuts none', async () => {
    const own = await door.harness.gateway({
      apiKeys: [alice.entry],
      filesUrl: join(door.folder, 'files'),
      maxUnreadBytes: 1024,
    });
    const bytes = Buffer.alloc(16 * MIB - 1, 'x');
    const { body } = await send(formOf(bytes), {}, own);
    expect(body.bytes).to.equal(bytes.byteLength);
    const metric = async (name: string): Promise<number> => {
      const metrics = await (await fetch(`${own.url}/metrics`)).text();
      return Number(new RegExp(`^millrace_gateway_${name} (\\d+)$`, 'm').exec(metrics)?.[1]);
    };
    const clients = [0, 1, 2].map(() => {
      const client = new RawClient(own);
      client.socket.once('data', () => client.socket.pause());
      return client.say(
        `GET /v1/files/${body.id}/content HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nConnection: close\r\n\r\n`,
      );
    });
    await until('each answer has begun', () => clients.every(({ heard }) => heard !== ''));
    // Somebody who reads at once has all of it: meanwhile the others were sent what they would take.
    const headers = { ...as(alice), 'accept-encoding': 'identity' };
    const read = await fetch(`${own.url}/v1/files/${body.id}/content`, { headers });
    expect((await read.arrayBuffer()).byteLength).to.equal(bytes.byteLength);
    expect(await metric('unread_bytes')).to.equal(0);
    for (const { socket } of clients) socket.resume();
    for (const client of clients) {
      await client.closed;
      expect(client.heard.length).to.be.above(bytes.byteLength);
    }
    expect(await metric('unread_answers_cut_total')).to.equal(0);
  });
});
