import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  END,
  FILE,
  type FileBody,
  FilesDoor,
  FORM,
  formOf,
  LINES,
  PURPOSE,
  part,
} from '../../test-support/files-door.js';
import { uniqueName } from '../../test-support/redis.js';
import { pieces } from '../../test-support/store-conformance.js';

const MIB = 1024 * 1024;

describe('the door of files, where they are sent in', () => {
  const door = new FilesDoor();
  const { alice, as, content, onDisk, send, stored } = door;
  before(() => door.open());
  after(() => door.close());

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
      const response = await fetch(`${door.gateway.url}/v1/files`, {
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
      const large = formOf(Buffer.alloc(16 * MIB + 1));
      for (const padding of [0, 32 * MIB]) {
        const body = Buffer.concat([large, Buffer.alloc(padding)]);
        for (const unannounced of [undefined, Readable.from(pieces(body))]) {
          const response = await fetch(`${door.gateway.url}/v1/files`, {
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

  it('inflates a body that is coded, and keeps a compressed file as it is', async () => {
    const coded = await send(gzipSync(PURPOSE + FILE + END), { 'content-encoding': 'gzip' });
    expect(coded.status).to.equal(200);
    expect(await (await content(coded.body.id)).text()).to.equal(LINES);
    const gz = gzipSync(LINES);
    const form = new FormData();
    form.set('file', new Blob([gz]), 'lines.jsonl.gz');
    form.set('purpose', 'batch');
    const init = { method: 'POST', headers: as(alice), body: form };
    const { id, bytes } = (await (await fetch(`${door.gateway.url}/v1/files`, init)).json()) as FileBody;
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

  it('takes a form from no page but its own and those that may ask', async () => {
    const friend = 'https://app.example.com';
    const own = await door.harness.gateway({ filesUrl: join(door.folder, 'pages'), corsOrigins: friend });
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
});
