import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeApiKey } from '../../admission/api-keys.js';
import { END, FILE, type FileBody, FilesDoor, LINES, PURPOSE } from '../../test-support/files-door.js';
import { get } from '../../test-support/harness.js';
import { uniqueName } from '../../test-support/redis.js';
import { S3Server, useCredentials } from '../../test-support/s3-server.js';

const MIB = 1024 * 1024;

describe('the door of files', () => {
  const door = new FilesDoor();
  const { alice, as, bob, content, file, onDisk, send } = door;
  before(() => door.open());
  after(() => door.close());

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
    const { body: list } = await get<{ data: FileBody[] }>(`${door.gateway.url}/v1/files`, as(alice));
    expect(list).to.deep.equal({
      object: 'list',
      data: [body],
      first_id: body.id,
      last_id: body.id,
      has_more: false,
    });
    expect(await (await content(body.id)).text()).to.equal(LINES);
    const url = `${door.gateway.url}/v1/files/${body.id}`;
    const deleted = await fetch(url, { method: 'DELETE', headers: as(alice) });
    expect(await deleted.json()).to.deep.equal({ id: body.id, object: 'file', deleted: true });
    expect((await file(body.id)).status).to.equal(404);
    expect(await onDisk()).to.deep.equal([]);
  });

  it('shows a key nothing of another’s, and nothing to one that may keep no jobs', async () => {
    const { body } = await send(PURPOSE + FILE + END);
    for (const path of [body.id, `${body.id}/content`]) {
      const { status, body: refusal } = await file(path, as(bob));
      expect(status).to.equal(404);
      expect(refusal.error).to.include({ code: 'file_not_found' });
    }
    const deleting = await fetch(`${door.gateway.url}/v1/files/${body.id}`, {
      method: 'DELETE',
      headers: as(bob),
    });
    expect(deleting.status).to.equal(404);
    const carol = makeApiKey('carol', ['infer']);
    const strict = await door.harness.gateway({ apiKeys: [carol.entry] });
    expect((await send(PURPOSE + FILE + END, as(carol), strict)).status).to.equal(403);
    expect((await fetch(`${strict.url}/v1/files`)).status).to.equal(401);
  });

  it('lists by purpose, page and order', async () => {
    const dave = makeApiKey(uniqueName('dave'), ['jobs']);
    const own = await door.harness.gateway({ apiKeys: [dave.entry], filesUrl: join(door.folder, 'files') });
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

  it('keeps files in S3 where it is told to, seen by every gateway', async () => {
    const setBack = useCredentials();
    const s3 = await S3Server.start();
    door.harness.onRelease(async () => {
      setBack();
      await s3.stop();
    });
    const flags = {
      apiKeys: [alice.entry],
      filesUrl: `s3://${S3Server.BUCKET}/a/prefix/`,
      s3Endpoint: s3.endpoint,
    };
    const [one, other] = await Promise.all([door.harness.gateway(flags), door.harness.gateway(flags)]);
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
});
