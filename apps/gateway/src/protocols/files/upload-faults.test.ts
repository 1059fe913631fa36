import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { END, FILE, FilesDoor, PURPOSE, part } from '../../test-support/files-door.js';
import { get } from '../../test-support/harness.js';
import { RawClient } from '../../test-support/raw-client.js';
import { until } from '../../test-support/redis.js';
import { RedisProxy } from '../../test-support/redis-proxy.js';
import { mountSmallDisk } from '../../test-support/small-disk.js';

const MIB = 1024 * 1024;

describe('the door of files, where something goes wrong with what is sent', () => {
  const door = new FilesDoor();
  const { alice, as, head, onDisk, send, stored } = door;
  before(() => door.open());
  after(() => door.close());

  it('tells of a wrong purpose before the file is sent', async () => {
    const client = new RawClient(door.gateway);
    client.say(head(1_000_000) + part('purpose', 'assistants') + FILE);
    await until('it is answered', () => client.statuses.length === 1);
    expect(client.statuses).to.deep.equal([400]);
    client.socket.destroy();
  });

  it('names all that the form takes where it has something else, and a file that is none', async () => {
    const misspelt = await send(PURPOSE + part('fiel', 'x') + END);
    expect(misspelt.status).to.equal(400);
    expect(misspelt.body.error?.message).to.match(/^fiel is not a field here; there are purpose, file, /);
    const text = await send(PURPOSE + part('file', 'x') + END);
    expect(text.status).to.equal(400);
    expect(text.body.error?.message).to.equal('file must be a file: its part of the form has no filename.');
  });

  it('keeps nothing of a client that goes away in the middle', async () => {
    const before = (await onDisk()).length;
    const client = new RawClient(door.gateway);
    client.say(head(1_000_000) + PURPOSE + FILE.slice(0, -10));
    await until('it is being stored', async () => (await onDisk()).some((path) => path.endsWith('.tmp')));
    client.socket.destroy();
    await until('nothing is left', async () => (await onDisk()).length === before);
  });

  it('takes a file for as long as it goes on, and none that stands still', async () => {
    const mostMs = 1000;
    const own = await door.harness.gateway({
      apiKeys: [alice.entry],
      filesUrl: join(door.folder, 'slow'),
      requestTimeoutMs: mostMs,
      headersTimeoutMs: mostMs,
    });
    const form = PURPOSE + part('file', 'x'.repeat(5000), 'slow.jsonl') + END;
    const start = head(form.length);
    const slow = new RawClient(own).say(start);
    const still = new RawClient(own).say(start + form.slice(0, 300));
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

  it('tells that the disk is full, keeps nothing of what did not fit, and serves on', async function () {
    const small = join(door.folder, 'small');
    const takeAway = mountSmallDisk(small, 4);
    if (!takeAway) this.skip();
    try {
      const own = await door.harness.gateway({ apiKeys: [alice.entry], filesUrl: small });
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

  it('says 503 where the storage can’t be reached', async () => {
    await writeFile(join(door.folder, 'no-folder'), '');
    const own = await door.harness.gateway({
      apiKeys: [alice.entry],
      filesUrl: join(door.folder, 'no-folder'),
    });
    const { status, headers, body } = await send(PURPOSE + FILE + END, {}, own);
    expect(status).to.equal(503);
    expect(headers.get('retry-after')).to.equal('1');
    expect(body.error).to.include({ code: 'storage_unavailable' });
  });

  it('says 503 while Redis is away, and keeps nothing of what came meanwhile', async () => {
    const proxy = await new RedisProxy().open();
    door.harness.onRelease(() => proxy.cut());
    const own = await door.harness.gateway({
      redisUrl: proxy.url,
      apiKeys: [alice.entry],
      filesUrl: join(door.folder, 'cut'),
    });
    const client = new RawClient(own);
    const form = PURPOSE + FILE + END;
    client.say(head(form.length) + form.slice(0, -100));
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
    client.socket.destroy();
    await proxy.open();
    await until('files are taken again', async () => (await send(form, {}, own)).status === 200);
  });
});
