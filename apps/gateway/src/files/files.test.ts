import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { expect } from 'chai';
import { keysOf, newOwner, OpenedFiles } from '../test-support/opened-files.js';
import { codeOf, pieces } from '../test-support/store-conformance.js';
import { type FileRecord, newFileId } from './file-record.js';
import { openFile } from './open-file.js';
import type { FileStore } from './store.js';

const MIB = 1024 * 1024;
const HOUR_MS = 3600_000;

describe('files', () => {
  const opened = new OpenedFiles();
  const { clock, create, open, untilPast } = opened;
  before(() => opened.start());
  after(() => opened.stop());

  it('are kept as they were sent, with what is known of them', async () => {
    const whose = newOwner();
    const content = randomBytes(3 * MIB);
    const record = await create(whose, content, { filename: 'naïve 文.jsonl' });
    expect(record).to.include({ owner: whose, purpose: 'batch', bytes: content.byteLength, v: 1 });
    expect(record.id).to.match(/^file-[0-9a-f]{32}$/);
    expect(record.sha256).to.equal(createHash('sha256').update(content).digest('hex'));
    expect(record.segments).to.deep.equal([{ key: `files/${record.id}/000000`, bytes: content.byteLength }]);
    expect(record.createdAt).to.be.closeTo(clock.now(), 5000);
    expect(record.expiresAt - record.createdAt).to.equal(30 * 24 * HOUR_MS);
    expect(await opened.files.get(record.id, whose)).to.deep.equal(record);
    expect((await buffer(opened.files.open(record))).equals(content)).to.equal(true);
  });

  it('are there for their owner alone', async () => {
    const [alice, bob] = [newOwner(), newOwner()];
    const { id } = await create(alice, 'a');
    expect(await codeOf(opened.files.get(id, bob))).to.equal('file_not_found');
    expect(await codeOf(opened.files.remove(id, bob))).to.equal('file_not_found');
    expect((await opened.files.list(bob, { limit: 10, order: 'asc' })).records).to.deep.equal([]);
    for (const none of [newFileId(), 'file-1', '', '../x', `${id}/`]) {
      expect(await codeOf(opened.files.get(none, alice)), none).to.equal('file_not_found');
    }
  });

  it('are gone once they are deleted, with their objects', async () => {
    const own = open();
    const whose = newOwner();
    const { id } = await create(whose, 'a', {}, own);
    await own.remove(id, whose);
    expect(await codeOf(own.get(id, whose))).to.equal('file_not_found');
    expect(await codeOf(own.remove(id, whose))).to.equal('file_not_found');
    expect(await keysOf(own)).to.deep.equal([]);
  });

  it('are gone when their time is over, and never stay longer than files are kept', async () => {
    const own = open({ fileKeepMs: 10_000 });
    const whose = newOwner();
    const brief = await create(whose, 'a', { expiresAt: clock.now() + 50 }, own);
    const long = await create(whose, 'b', { expiresAt: clock.now() + HOUR_MS }, own);
    expect(long.expiresAt - long.createdAt).to.equal(10_000);
    await untilPast(brief.expiresAt);
    expect(await codeOf(own.get(brief.id, whose))).to.equal('file_not_found');
    const { records } = await own.list(whose, { limit: 10, order: 'asc' });
    expect(records.map(({ id }) => id)).to.deep.equal([long.id]);
  });

  it('are read across their objects, one after another', async () => {
    const whose = newOwner();
    const id = newFileId();
    const segments = [];
    for (const [n, part] of ['abc', '', 'defgh', 'i'].entries()) {
      const key = `files/${id}/${n}-1`;
      segments.push({ key, bytes: await opened.files.store.put(key, pieces(Buffer.from(part))) });
    }
    const now = Math.floor(clock.now());
    const record: FileRecord = {
      v: 1,
      id,
      owner: whose,
      filename: 'out.jsonl',
      purpose: 'batch_output',
      createdAt: now,
      expiresAt: now + HOUR_MS,
      bytes: 9,
      segments,
    };
    await opened.files.adopt(record);
    expect(await opened.files.get(id, whose)).to.deep.equal(record);
    for (let start = 0; start <= 9; start++) {
      for (let end = start; end <= 10; end++) {
        expect(await text(opened.files.open(record, start, end))).to.equal('abcdefghi'.slice(start, end));
      }
    }
    await opened.files.store.remove([`files/${id}/2-1`]);
    expect(await codeOf(text(opened.files.open(record)))).to.equal('file_not_found');
    expect(await text(opened.files.open(record, 0, 3))).to.equal('abc');
  });

  it('that have lost bytes fail at their end instead of seeming whole', async () => {
    const record = await create(newOwner(), 'abc');
    const claimed = { ...record, bytes: 5, segments: record.segments.map((each) => ({ ...each, bytes: 5 })) };
    expect(await codeOf(text(opened.files.open(claimed)))).to.equal('storage_unavailable');
  });

  it('stop being read when their reader goes', async () => {
    const record = await create(newOwner(), Buffer.alloc(4 * MIB));
    const stream = opened.files.open(record);
    await new Promise((resolve) => stream.once('readable', resolve));
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(stream.readableLength).to.be.below(MIB);
  });

  it('let go of a storage that sends nothing when their reader goes', async () => {
    const record = await create(newOwner(), 'abc');
    const silent = new Readable({ read: () => undefined });
    const store = { ...opened.files.store, read: () => Promise.resolve(silent) } as unknown as FileStore;
    const stream = openFile(store, record);
    const asked = new Promise((resolve) => setImmediate(resolve));
    stream.read();
    await asked;
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(silent.destroyed).to.equal(true);
  });

  it('whose sending breaks off leave nothing behind, and count for nothing', async () => {
    const own = open({ maxFileBytesPerKey: 10 * MIB });
    const whose = newOwner();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(9 * MIB);
      throw new Error('the client went away');
    }
    const details = { filename: 'a', purpose: 'batch' } as const;
    const fault = await own.create(whose, details, broken()).catch((error: Error) => error.message);
    expect(fault).to.equal('the client went away');
    expect(await keysOf(own)).to.deep.equal([]);
    await create(whose, Buffer.alloc(10 * MIB), {}, own);
  });
});
