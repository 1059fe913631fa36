import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { makeApiKey } from '../../admission/api-keys.js';
import { LocalStore } from '../../files/local-store.js';
import type { Gateway } from '../../gateway.js';
import { type Answer, get, Harness } from '../../test-support/harness.js';
import { RawClient } from '../../test-support/raw-client.js';
import { uniqueName, until } from '../../test-support/redis.js';
import { RedisProxy } from '../../test-support/redis-proxy.js';
import { S3Server, useCredentials } from '../../test-support/s3-server.js';
import { mountSmallDisk } from '../../test-support/small-disk.js';
import { listed, pieces } from '../../test-support/store-conformance.js';

const MIB = 1024 * 1024;
const BOUNDARY = 'a-boundary-of-tests';
const LINES = '{"custom_id":"1"}\n'.repeat(1000);

interface FileBody {
  id: string;
  bytes: number;
  error?: { message: string; param: string; code: string; type: string };
  [field: string]: unknown;
}

/** A part of a form; with a filename it is a file. */
function part(name: string, value: string, filename?: string): string {
  const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: text/plain`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
}

const END = `--${BOUNDARY}--\r\n`;
const FORM = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
const PURPOSE = part('purpose', 'batch');
const FILE = part('file', LINES, 'lines.jsonl');

describe('the door of files', () => {
  const harness = new Harness();
  const [alice, bob] = ['alice', 'bob'].map((name) => makeApiKey(uniqueName(name), ['jobs'])) as [
    ReturnType<typeof makeApiKey>,
    ReturnType<typeof makeApiKey>,
  ];
  const as = ({ key }: { key: string }) => ({ authorization: `Bearer ${key}` });
  let folder: string;
  let gateway: Gateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-door-'));
    gateway = await harness.gateway({
      apiKeys: [alice.entry, bob.entry],
      filesUrl: join(folder, 'files'),
      maxFileBytes: 16 * MIB,
      compressFromBytes: 1000,
    });
  });
  after(async () => {
    await harness.release();
    await rm(folder, { recursive: true });
  });

  async function send(
    body: string | Uint8Array,
    headers: Record<string, string> = {},
    at = gateway,
  ): Promise<Answer<FileBody>> {
    const response = await fetch(`${at.url}/v1/files`, {
      method: 'POST',
      headers: { ...FORM, ...as(alice), ...headers },
      body: body as string,
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as FileBody };
  }
  const file = (path: string, headers: Record<string, string> = {}) =>
    get<FileBody>(`${gateway.url}/v1/files/${path}`, { ...as(alice), ...headers });
  const content = (id: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${gateway.url}/v1/files/${id}/content`, {
      method,
      headers: { 'accept-encoding': 'identity', ...as(alice), ...headers },
    });
  const stored = async (name = 'files'): Promise<number> =>
    (await listed(new LocalStore(join(folder, name)))).length;
  /** Everything under the storage's folder, what is being written too. */
  const onDisk = (name = 'files'): Promise<string[]> =>
    readdir(join(folder, name), { recursive: true }).catch(() => []);

  it('takes a file, tells of it, gives it back and deletes it', async () => {
    const { status, body } = await send(PURPOSE + FILE + END);
    expect(status).to.equal(200);
    expect(body).to.include({
      object: 'file',
      bytes: LINES.length,
      filename: 'lines.jsonl',
      purpose: 'batch',
      status: 'processed',
    });
    expect(Number(body.created_at)).to.be.closeTo(Date.now() / 1000, 5);
    expect(Number(body.expires_at) - Number(body.created_at)).to.equal(30 * 24 * 3600);
    expect((await file(body.id)).body).to.deep.equal(body);
    const { body: list } = await get<{ data: FileBody[] }>(`${gateway.url}/v1/files`, as(alice));
    expect(list).to.deep.equal({
      object: 'list',
      data: [body],
      first_id: body.id,
      last_id: body.id,
      has_more: false,
    });
    expect(await (await content(body.id)).text()).to.equal(LINES);
    const url = `${gateway.url}/v1/files/${body.id}`;
    const deleted = await fetch(url, { method: 'DELETE', headers: as(alice) });
    expect(await deleted.json()).to.deep.equal({ id: body.id, object: 'file', deleted: true });
    expect((await file(body.id)).status).to.equal(404);
    expect(await onDisk()).to.deep.equal([]);
  });

  it('takes the fields before the file and after it', async () => {
    const expiry = part('expires_after[anchor]', 'created_at') + part('expires_after[seconds]', '3600');
    for (const form of [
      PURPOSE + expiry + FILE + END,
      FILE + expiry + PURPOSE + END,
      expiry + FILE + PURPOSE + END,
    ]) {
      const { status, body } = await send(form);
      expect(status).to.equal(200);
      expect(Number(body.expires_at) - Number(body.created_at)).to.be.within(3599, 3601);
    }
  });

  for (const name of ['naïve 文件.jsonl', 'a "b".jsonl', 'C:\\lines.jsonl', 'a/../b.jsonl']) {
    it(`keeps the name of a file, but no path: ${name}`, async () => {
      const form = new FormData();
      form.set('purpose', 'batch');
      form.set('file', new Blob(['x']), name);
      const response = await fetch(`${gateway.url}/v1/files`, {
        method: 'POST',
        headers: as(alice),
        body: form,
      });
      const { id, filename } = (await response.json()) as { id: string; filename: string };
      expect(filename.endsWith('.jsonl')).to.equal(true);
      expect(filename).to.not.match(/[/\\]/);
      if (name.includes('文')) expect(filename).to.equal(name);
      const disposition = (await content(id)).headers.get('content-disposition') ?? '';
      expect(disposition).to.match(/^attachment; filename=/);
      if (name.includes('文')) expect(disposition).to.include(`filename*=UTF-8''${encodeURIComponent(name)}`);
    });
  }

  describe('refuses, naming the field, and keeps nothing of it:', () => {
    for (const [what, form, field, says] of [
      ['another purpose', part('purpose', 'fine-tune') + FILE + END, 'purpose', 'batch'],
      ['another purpose behind the file', FILE + part('purpose', 'vision') + END, 'purpose', 'batch'],
      ['no purpose', FILE + END, 'purpose', 'missing'],
      ['no file', PURPOSE + END, 'file', 'missing'],
      ['a file that is a field', PURPOSE + part('file', LINES) + END, 'file', 'filename'],
      ['a file without a name', PURPOSE + part('file', LINES, '') + END, 'file', 'filename'],
      ['a file in another field', PURPOSE + part('data', LINES, 'a') + END, 'file', '"file"'],
      ['two files', PURPOSE + FILE + FILE + END, 'file', 'more than one'],
      ['a field that is none', PURPOSE + part('model', 'x') + FILE + END, 'model', 'not a field'],
      ['a field twice', PURPOSE + PURPOSE + FILE + END, 'purpose', 'twice'],
      ['a name that is no text', PURPOSE + part('file', 'x', 'a\u0001b') + END, 'file', 'control'],
      ['a long name', PURPOSE + part('file', 'x', 'x'.repeat(256)) + END, 'file', '255'],
      ['a long field', part('purpose', 'x'.repeat(5000)) + FILE + END, 'purpose', 'longer'],
      [
        'many fields',
        Array.from({ length: 30 }, (_, i) => part(`f${i}`, '')).join('') + END,
        'body',
        'parts',
      ],
      [
        'a time that is too long',
        PURPOSE +
          part('expires_after[anchor]', 'created_at') +
          part('expires_after[seconds]', '2592001') +
          FILE +
          END,
        'expires_after[seconds]',
        '30 days',
      ],
      [
        'a time without its start',
        PURPOSE + part('expires_after[seconds]', '3600') + FILE + END,
        'expires_after[anchor]',
        'missing',
      ],
      [
        'a time from another start',
        PURPOSE + part('expires_after[anchor]', 'last_active_at') + FILE + END,
        'expires_after[anchor]',
        'created_at',
      ],
      ['a form that breaks off in the file', PURPOSE + FILE.slice(0, -100), 'body', 'whole form'],
      ['a form that breaks off in a field', FILE + PURPOSE.slice(0, -10), 'body', 'whole form'],
      ['no form', LINES, 'body', 'whole form'],
      ['nothing', '', 'body', 'whole form'],
    ] as const) {
      it(what, async () => {
        const before = await stored();
        const { status, body } = await send(form);
        expect(status).to.equal(400);
        expect(body.error).to.include({ param: field, code: 'invalid_input', type: 'invalid_request_error' });
        expect(body.error?.message).to.include(says);
        expect(await stored()).to.equal(before);
        expect((await onDisk()).filter((path) => path.endsWith('.tmp'))).to.deep.equal([]);
      });
    }

    it('what is no form by its type', async () => {
      for (const type of [
        'application/json',
        'multipart/form-data',
        'multipart/mixed; boundary=x',
        'text/x',
      ]) {
        const { status, body } = await send(PURPOSE + FILE + END, { 'content-type': type });
        expect(status, type).to.equal(415);
        expect(body.error).to.include({ param: 'Content-Type' });
      }
    });

    it('a file that is too large, announced or not', async () => {
      const before = await stored();
      const large = Buffer.concat([
        Buffer.from(PURPOSE + part('file', '', 'a').slice(0, -2)),
        Buffer.alloc(16 * MIB + 1),
        Buffer.from(`\r\n${END}`),
      ]);
      for (const padding of [0, 32 * MIB]) {
        const body = Buffer.concat([large, Buffer.alloc(padding)]);
        for (const unannounced of [undefined, Readable.from(pieces(body))]) {
          const response = await fetch(`${gateway.url}/v1/files`, {
            method: 'POST',
            headers: { ...FORM, ...as(alice) },
            body: (unannounced ?? body) as unknown as string,
            ...(unannounced ? { duplex: 'half' } : {}),
          });
          expect(response.status).to.equal(413);
          expect(await response.json()).to.have.nested.property('error.code', 'body_too_large');
        }
      }
      // Bytes that say nothing, inflated to more than may come.
      const bomb = gzipSync(Buffer.concat([large, Buffer.alloc(64 * MIB)]));
      expect((await send(bomb, { 'content-encoding': 'gzip' })).status).to.equal(413);
      expect(await stored()).to.equal(before);
    });
  });

  it('tells of a wrong purpose before the file is sent', async () => {
    const client = new RawClient(gateway);
    client.say(
      `POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nContent-Type: ${FORM['content-type']}\r\n` +
        `Content-Length: 1000000\r\n\r\n${part('purpose', 'assistants')}${FILE}`,
    );
    await until('it is answered', () => client.statuses.length === 1);
    expect(client.statuses).to.deep.equal([400]);
    client.socket.destroy();
  });

  it('keeps nothing of a client that goes away in the middle', async () => {
    const before = (await onDisk()).length;
    const client = new RawClient(gateway);
    client.say(
      `POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nContent-Type: ${FORM['content-type']}\r\n` +
        `Content-Length: 1000000\r\n\r\n${PURPOSE}${FILE}`.slice(0, -10),
    );
    await until('it is being stored', async () => (await onDisk()).some((path) => path.endsWith('.tmp')));
    client.socket.destroy();
    await until('nothing is left', async () => (await onDisk()).length === before);
  });

  it('takes a file for as long as it goes on, and none that stands still', async () => {
    const mostMs = 1000;
    const own = await harness.gateway({
      apiKeys: [alice.entry],
      filesUrl: join(folder, 'slow'),
      requestTimeoutMs: mostMs,
      headersTimeoutMs: mostMs,
    });
    const form = PURPOSE + part('file', 'x'.repeat(5000), 'slow.jsonl') + END;
    const head =
      `POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nContent-Type: ${FORM['content-type']}\r\n` +
      `Content-Length: ${form.length}\r\n\r\n`;
    const slow = new RawClient(own).say(head);
    const still = new RawClient(own).say(head + form.slice(0, 300));
    for (let at = 0; at < form.length; at += 400) {
      slow.say(form.slice(at, at + 400));
      await new Promise((resolve) => setTimeout(resolve, mostMs / 8));
    }
    await until('the slow one is stored', () => slow.statuses.length === 1);
    expect(slow.statuses).to.deep.equal([200]);
    await still.closed;
    expect(still.statuses).to.deep.equal([408]);
    await until('nothing is left of the other', async () => (await stored('slow')) === 1);
    expect((await onDisk('slow')).filter((path) => path.endsWith('.tmp'))).to.deep.equal([]);
    slow.socket.destroy();
  });

  it('inflates a body that is coded, and keeps a compressed file as it is', async () => {
    const coded = await send(gzipSync(PURPOSE + FILE + END), { 'content-encoding': 'gzip' });
    expect(coded.status).to.equal(200);
    expect(await (await content(coded.body.id)).text()).to.equal(LINES);
    const gz = gzipSync(LINES);
    const form = new FormData();
    form.set('file', new Blob([gz]), 'lines.jsonl.gz');
    form.set('purpose', 'batch');
    const init = { method: 'POST', headers: as(alice), body: form };
    const { id, bytes } = (await (await fetch(`${gateway.url}/v1/files`, init)).json()) as FileBody;
    expect(bytes).to.equal(gz.byteLength);
    const back = await content(id, { 'accept-encoding': 'gzip' });
    expect(back.headers.get('content-encoding')).to.equal(null);
    expect(Buffer.from(await back.arrayBuffer()).equals(gz)).to.equal(true);
    const before = await stored();
    for (const broken of [gzipSync(PURPOSE + FILE + END).subarray(0, -9), Buffer.from('no gzip')]) {
      const { status, body } = await send(broken, { 'content-encoding': 'gzip' });
      expect(status).to.equal(400);
      expect(body.error).to.include({ code: 'invalid_encoding', param: 'body' });
    }
    expect((await send('', { 'content-encoding': 'br' })).status).to.equal(415);
    expect(await stored()).to.equal(before);
  });

  it('takes a retry under its Idempotency-Key for the same file', async () => {
    const key = { 'idempotency-key': uniqueName('key') };
    const first = await send(PURPOSE + FILE + END, key);
    const again = await send(FILE + PURPOSE + END, key);
    expect(again.body).to.deep.equal(first.body);
    expect(first.headers.get('idempotency-replayed')).to.equal(null);
    expect(again.headers.get('idempotency-replayed')).to.equal('true');
    const other = await send(PURPOSE + part('file', 'other', 'lines.jsonl') + END, key);
    expect(other.status).to.equal(422);
    expect(other.body.error).to.include({ code: 'idempotency_key_reused', param: 'Idempotency-Key' });
    const long = await send(PURPOSE + FILE + END, { 'idempotency-key': 'x'.repeat(256) });
    expect(long.body.error).to.include({ code: 'invalid_input', param: 'Idempotency-Key' });
  });

  it('shows a key nothing of another’s, and nothing to one that may keep no jobs', async () => {
    const { body } = await send(PURPOSE + FILE + END);
    for (const path of [body.id, `${body.id}/content`]) {
      const { status, body: refusal } = await file(path, as(bob));
      expect(status).to.equal(404);
      expect(refusal.error).to.include({ code: 'file_not_found' });
    }
    const deleting = await fetch(`${gateway.url}/v1/files/${body.id}`, {
      method: 'DELETE',
      headers: as(bob),
    });
    expect(deleting.status).to.equal(404);
    const carol = makeApiKey('carol', ['infer']);
    const strict = await harness.gateway({ apiKeys: [carol.entry] });
    expect((await send(PURPOSE + FILE + END, as(carol), strict)).status).to.equal(403);
    expect((await fetch(`${strict.url}/v1/files`)).status).to.equal(401);
  });

  it('takes a form from no page but its own and those that may ask', async () => {
    const friend = 'https://app.example.com';
    const own = await harness.gateway({ filesUrl: join(folder, 'pages'), corsOrigins: friend });
    for (const [origin, status] of [
      [friend, 200],
      [own.url, 200],
      ['https://evil.example.com', 403],
      ['null', 403],
    ] as const) {
      const answer = await send(PURPOSE + FILE + END, { authorization: '', origin }, own);
      expect(answer.status, origin).to.equal(status);
    }
    expect(await stored('pages')).to.equal(2);
  });

  it('lists by purpose, page and order', async () => {
    const dave = makeApiKey(uniqueName('dave'), ['jobs']);
    const own = await harness.gateway({ apiKeys: [dave.entry], filesUrl: join(folder, 'files') });
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push((await send(PURPOSE + FILE + END, as(dave), own)).body.id);
    const list = async (query: string) =>
      (await get<{ data: FileBody[]; has_more: boolean }>(`${own.url}/v1/files?${query}`, as(dave))).body;
    const all = (await list('order=asc')).data.map(({ id }) => id);
    expect(all).to.have.members(ids);
    expect((await list('')).data.map(({ id }) => id)).to.deep.equal([...all].reverse());
    const first = await list('order=asc&limit=2');
    expect(first).to.include({ has_more: true, first_id: all[0], last_id: all[1] });
    expect((await list(`order=asc&limit=2&after=${all[1]}`)).data.map(({ id }) => id)).to.deep.equal([
      all[2],
    ]);
    expect(await list('purpose=batch_output')).to.deep.equal({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
    for (const [query, field] of [
      ['limit=0', 'limit'],
      ['order=up', 'order'],
      ['purpose=x', 'purpose'],
      ['after=file-1', 'after'],
      ['page=2', 'page'],
    ] as const) {
      expect((await list(query)) as object).to.have.nested.property('error.param', field);
    }
  });

  describe('gives the bytes of a file', () => {
    const bytes = randomBytes(MIB);
    let id: string;
    let etag: string;
    before(async () => {
      const form = new FormData();
      form.set('purpose', 'batch');
      form.set('file', new Blob([bytes]), 'random.bin');
      const init = { method: 'POST', headers: as(alice), body: form };
      ({ id } = (await (await fetch(`${gateway.url}/v1/files`, init)).json()) as FileBody);
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
      const client = new RawClient(gateway);
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
      await truncate(join(folder, 'files', 'files', body.id, '000000'), LINES.length / 2);
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
      await rm(join(folder, 'files', 'files', body.id), { recursive: true });
      const answer = await content(body.id);
      expect(answer.status).to.equal(404);
      expect(await answer.json()).to.have.nested.property('error.code', 'file_not_found');
    });
  });

  it('waits for a client that reads late, counts it to no answers that wait, and cuts none', async () => {
    const own = await harness.gateway({
      apiKeys: [alice.entry],
      filesUrl: join(folder, 'files'),
      maxUnreadBytes: 1024,
    });
    const bytes = Buffer.alloc(16 * MIB - 1, 'x');
    const form = Buffer.concat([
      Buffer.from(PURPOSE + part('file', '', 'a').slice(0, -2)),
      bytes,
      Buffer.from(`\r\n${END}`),
    ]);
    const { body } = await send(form, {}, own);
    expect(body.bytes).to.equal(bytes.byteLength);
    const metric = async (name: string): Promise<number> => {
      const metrics = await (await fetch(`${own.url}/metrics`)).text();
      return Number(new RegExp(`^millrace_gateway_${name} (\\d+)$`, 'm').exec(metrics)?.[1]);
    };
    const clients = [0, 1, 2].map(() => {
      const client = new RawClient(own);
      client.socket.pause();
      return client.say(
        `GET /v1/files/${body.id}/content HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nConnection: close\r\n\r\n`,
      );
    });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(await metric('unread_bytes')).to.equal(0);
    for (const { socket } of clients) socket.resume();
    for (const client of clients) {
      await client.closed;
      expect(client.heard.length).to.be.above(bytes.byteLength);
    }
    expect(await metric('unread_answers_cut_total')).to.equal(0);
  });

  it('tells that the disk is full, keeps nothing of what did not fit, and serves on', async function () {
    const small = join(folder, 'small');
    const takeAway = mountSmallDisk(small, 4);
    if (!takeAway) this.skip();
    try {
      const own = await harness.gateway({ apiKeys: [alice.entry], filesUrl: small });
      const kept = await send(PURPOSE + FILE + END, {}, own);
      const large = PURPOSE + part('file', 'x'.repeat(8 * MIB), 'large.jsonl') + END;
      const [refused, meanwhile] = await Promise.all([
        send(large, {}, own),
        get(`${own.url}/v1/files/${kept.body.id}`, as(alice)),
      ]);
      expect(refused.status).to.equal(507);
      expect(refused.body.error).to.include({ code: 'storage_full', type: 'server_error' });
      expect(meanwhile.status).to.equal(200);
      expect(await stored('small')).to.equal(1);
      expect((await onDisk('small')).filter((path) => path.endsWith('.tmp'))).to.deep.equal([]);
      expect((await send(PURPOSE + FILE + END, {}, own)).status).to.equal(200);
      await own.close();
    } finally {
      takeAway();
    }
  });

  it('keeps files in S3 where it is told to, seen by every gateway', async () => {
    const setBack = useCredentials();
    const s3 = await S3Server.start();
    harness.onRelease(async () => {
      setBack();
      await s3.stop();
    });
    const flags = {
      apiKeys: [alice.entry],
      filesUrl: `s3://${S3Server.BUCKET}/a/prefix/`,
      s3Endpoint: s3.endpoint,
    };
    const [one, other] = await Promise.all([harness.gateway(flags), harness.gateway(flags)]);
    const bytes = randomBytes(12 * MIB);
    const form = new FormData();
    form.set('file', new Blob([bytes]), 'random.bin');
    form.set('purpose', 'batch');
    const sent = await fetch(`${one.url}/v1/files`, { method: 'POST', headers: as(alice), body: form });
    const { id } = (await sent.json()) as FileBody;
    const url = `${other.url}/v1/files/${id}`;
    const whole = await fetch(`${url}/content`, { headers: as(alice) });
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).to.equal(true);
    const range = await fetch(`${url}/content`, {
      headers: { ...as(alice), range: 'bytes=6000000-6000009' },
    });
    expect(range.status).to.equal(206);
    expect(Buffer.from(await range.arrayBuffer()).equals(bytes.subarray(6_000_000, 6_000_010))).to.equal(
      true,
    );
    expect((await fetch(url, { method: 'DELETE', headers: as(alice) })).status).to.equal(200);
    expect((await fetch(`${one.url}/v1/files/${id}/content`, { headers: as(alice) })).status).to.equal(404);
  });

  it('says 503 where the storage can’t be reached', async () => {
    await writeFile(join(folder, 'no-folder'), '');
    const own = await harness.gateway({ apiKeys: [alice.entry], filesUrl: join(folder, 'no-folder') });
    const { status, headers, body } = await send(PURPOSE + FILE + END, {}, own);
    expect(status).to.equal(503);
    expect(headers.get('retry-after')).to.equal('1');
    expect(body.error).to.include({ code: 'storage_unavailable' });
  });

  it('says 503 while Redis is away, and keeps nothing of what came meanwhile', async () => {
    const proxy = await new RedisProxy().open();
    harness.onRelease(() => proxy.cut());
    const own = await harness.gateway({
      redisUrl: proxy.url,
      apiKeys: [alice.entry],
      filesUrl: join(folder, 'cut'),
    });
    const client = new RawClient(own);
    const form = PURPOSE + FILE + END;
    client.say(
      `POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.key}\r\nContent-Type: ${FORM['content-type']}\r\n` +
        `Content-Length: ${form.length}\r\n\r\n${form.slice(0, -100)}`,
    );
    await until('it is being stored', async () =>
      (await onDisk('cut')).some((path) => path.endsWith('.tmp')),
    );
    await proxy.cut();
    client.say(form.slice(-100));
    await until('it is answered', () => client.statuses.length === 1);
    expect(client.statuses).to.deep.equal([503]);
    expect(client.heard).to.include('queue_unavailable');
    expect(await onDisk('cut')).to.deep.equal([]);
    const next = await send(form, {}, own);
    expect(next.status).to.equal(503);
    await proxy.open();
    client.socket.destroy();
  });
});
