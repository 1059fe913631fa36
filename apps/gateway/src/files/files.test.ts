import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { createLogger, loadSettings, RedisClock, type SettingFlags } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { testRedis, uniqueName } from '../test-support/redis.js';
import { codeOf, listed, pieces } from '../test-support/store-conformance.js';
import { type FileRecord, namedFileId, newFileId } from './file-record.js';
import { Files } from './files.js';
import { openFile } from './open-file.js';
import type { FileStore } from './store.js';

const MIB = 1024 * 1024;
const HOUR_MS = 3600_000;

describe('files', () => {
  let redis: Redis;
  let folder: string;
  let files: Files;
  const clock = new RedisClock();

  function open(flags: SettingFlags = {}): Files {
    const settings = loadSettings({}, { filesUrl: join(folder, uniqueName('store')), ...flags });
    return new Files({ redis, clock, settings, logger: createLogger('silent', {}) });
  }

  before(async () => {
    redis = testRedis();
    await clock.start(redis);
    folder = await mkdtemp(join(tmpdir(), 'millrace-files-'));
    files = open();
  });
  after(async () => {
    clock.stop();
    redis.disconnect();
    await rm(folder, { recursive: true });
  });

  const owner = (): string => uniqueName('owner');
  const create = (
    whose: string,
    content: string | Uint8Array,
    more: { idempotencyKey?: string; expiresAt?: number; filename?: string } = {},
    at = files,
  ): Promise<FileRecord> =>
    at.create(
      whose,
      { filename: 'lines.jsonl', purpose: 'batch', ...more },
      pieces(Buffer.from(content as string)),
    );
  const keysOf = async (at: Files): Promise<string[]> => (await listed(at.store)).map(({ key }) => key);

  it('are kept as they were sent, with what is known of them', async () => {
    const whose = owner();
    const content = randomBytes(3 * MIB);
    const record = await create(whose, content, { filename: 'naïve 文.jsonl' });
    expect(record).to.include({ owner: whose, purpose: 'batch', bytes: content.byteLength, v: 1 });
    expect(record.id).to.match(/^file-[0-9a-f]{32}$/);
    expect(record.sha256).to.equal(createHash('sha256').update(content).digest('hex'));
    expect(record.segments).to.deep.equal([{ key: `files/${record.id}/000000`, bytes: content.byteLength }]);
    expect(record.createdAt).to.be.closeTo(clock.now(), 5000);
    expect(record.expiresAt - record.createdAt).to.equal(30 * 24 * HOUR_MS);
    expect(await files.get(record.id, whose)).to.deep.equal(record);
    expect((await buffer(files.open(record))).equals(content)).to.equal(true);
  });

  it('are there for their owner alone', async () => {
    const [alice, bob] = [owner(), owner()];
    const { id } = await create(alice, 'a');
    expect(await codeOf(files.get(id, bob))).to.equal('file_not_found');
    expect(await codeOf(files.remove(id, bob))).to.equal('file_not_found');
    expect((await files.list(bob, { limit: 10, order: 'asc' })).records).to.deep.equal([]);
    for (const none of [newFileId(), 'file-1', '', '../x', `${id}/`]) {
      expect(await codeOf(files.get(none, alice)), none).to.equal('file_not_found');
    }
  });

  it('are gone once they are deleted, with their objects', async () => {
    const own = open();
    const whose = owner();
    const { id } = await create(whose, 'a', {}, own);
    await own.remove(id, whose);
    expect(await codeOf(own.get(id, whose))).to.equal('file_not_found');
    expect(await codeOf(own.remove(id, whose))).to.equal('file_not_found');
    expect(await keysOf(own)).to.deep.equal([]);
  });

  it('are gone when their time is over, and never stay longer than files are kept', async () => {
    const own = open({ fileKeepMs: 10_000 });
    const whose = owner();
    const brief = await create(whose, 'a', { expiresAt: clock.now() + 50 }, own);
    const long = await create(whose, 'b', { expiresAt: clock.now() + HOUR_MS }, own);
    expect(long.expiresAt - long.createdAt).to.equal(10_000);
    while (clock.now() < brief.expiresAt) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await codeOf(own.get(brief.id, whose))).to.equal('file_not_found');
    const { records } = await own.list(whose, { limit: 10, order: 'asc' });
    expect(records.map(({ id }) => id)).to.deep.equal([long.id]);
  });

  it('are read across their objects, one after another', async () => {
    const whose = owner();
    const id = newFileId();
    const segments = [];
    for (const [n, part] of ['abc', '', 'defgh', 'i'].entries()) {
      const key = `files/${id}/${n}-1`;
      segments.push({ key, bytes: await files.store.put(key, pieces(Buffer.from(part))) });
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
    await files.adopt(record);
    expect(await files.get(id, whose)).to.deep.equal(record);
    for (let start = 0; start <= 9; start++) {
      for (let end = start; end <= 10; end++) {
        expect(await text(files.open(record, start, end))).to.equal('abcdefghi'.slice(start, end));
      }
    }
    await files.store.remove([`files/${id}/2-1`]);
    expect(await codeOf(text(files.open(record)))).to.equal('file_not_found');
    expect(await text(files.open(record, 0, 3))).to.equal('abc');
  });

  it('that have lost bytes fail at their end instead of seeming whole', async () => {
    const record = await create(owner(), 'abc');
    const claimed = { ...record, bytes: 5, segments: record.segments.map((each) => ({ ...each, bytes: 5 })) };
    expect(await codeOf(text(files.open(claimed)))).to.equal('storage_unavailable');
  });

  it('stop being read when their reader goes', async () => {
    const record = await create(owner(), Buffer.alloc(4 * MIB));
    const stream = files.open(record);
    await new Promise((resolve) => stream.once('readable', resolve));
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(stream.readableLength).to.be.below(MIB);
  });

  it('let go of a storage that sends nothing when their reader goes', async () => {
    const record = await create(owner(), 'abc');
    const silent = new Readable({ read: () => undefined });
    const store = { ...files.store, read: () => Promise.resolve(silent) } as unknown as FileStore;
    const stream = openFile(store, record);
    const asked = new Promise((resolve) => setImmediate(resolve));
    stream.read();
    await asked;
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(silent.destroyed).to.equal(true);
  });

  describe('have limits:', () => {
    it('one file its bytes', async () => {
      const own = open({ maxFileBytes: MIB });
      const whose = owner();
      expect(await codeOf(create(whose, Buffer.alloc(MIB + 1), {}, own))).to.equal('body_too_large');
      expect(await keysOf(own)).to.deep.equal([]);
      expect((await create(whose, Buffer.alloc(MIB), {}, own)).bytes).to.equal(MIB);
    });

    it('one key its bytes, also of files that are being sent at the same time', async () => {
      const own = open({ maxFileBytesPerKey: 10 * MIB });
      const whose = owner();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 5 }, () => create(whose, Buffer.alloc(4 * MIB), {}, own)),
      );
      const kept = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
      const refused = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? (outcome.reason as { code: string }).code : [],
      );
      expect(kept.length).to.be.within(0, 2);
      expect(new Set(refused)).to.deep.equal(new Set(['file_limit']));
      expect(await keysOf(own)).to.have.length(kept.length);
      for (const { id } of kept) await own.remove(id, whose);
      // What was refused counts for nothing: there is room for all of it.
      const second = await create(whose, Buffer.alloc(10 * MIB), {}, own);
      expect(await codeOf(create(whose, 'a', {}, own))).to.equal('file_limit');
      await own.remove(second.id, whose);
      await create(whose, 'a', {}, own);
      await create(owner(), Buffer.alloc(10 * MIB), {}, own);
    });

    it('one key its files, empty ones too', async () => {
      const own = open({ maxFilesPerKey: 2 });
      const whose = owner();
      const first = await create(whose, '', {}, own);
      await create(whose, '', {}, own);
      const refusal = await create(whose, '', {}, own).catch((error: unknown) => error);
      expect(refusal).to.have.nested.property('code', 'file_limit');
      expect(refusal).to.have.nested.property('details.retryAfterSeconds').that.is.above(0);
      await own.remove(first.id, whose);
      await create(whose, '', {}, own);
    });

    it('but what a batch writes is never refused, and counts', async () => {
      const own = open({ maxFileBytesPerKey: MIB });
      const whose = owner();
      const record = await create(whose, Buffer.alloc(MIB), {}, own);
      const output: FileRecord = { ...record, id: newFileId(), purpose: 'batch_output' };
      await own.adopt(output);
      await own.adopt({ ...output, bytes: 5 });
      expect((await own.get(output.id, whose)).bytes).to.equal(5);
      await own.remove(record.id, whose);
      expect(await codeOf(create(whose, Buffer.alloc(MIB), {}, own))).to.equal('file_limit');
      await create(whose, Buffer.alloc(MIB - 5), {}, own);
    });

    it('whose time is over count no longer', async () => {
      const own = open({ maxFilesPerKey: 1 });
      const whose = owner();
      const { expiresAt } = await create(whose, 'a', { expiresAt: clock.now() + 50 }, own);
      while (clock.now() < expiresAt) await new Promise((resolve) => setTimeout(resolve, 10));
      await create(whose, 'b', {}, own);
    });
  });

  describe('under an Idempotency-Key', () => {
    it('are the same file for the same bytes, and no other for others', async () => {
      const own = open();
      const whose = owner();
      const named = { idempotencyKey: 'monday' };
      const first = await create(whose, 'abc', named, own);
      expect(await create(whose, 'abc', { ...named, filename: 'again.jsonl' }, own)).to.deep.equal(first);
      expect(await codeOf(create(whose, 'abd', named, own))).to.equal('idempotency_key_reused');
      expect(await codeOf(create(whose, '', named, own))).to.equal('idempotency_key_reused');
      expect(await keysOf(own)).to.have.length(1);
      expect(await text(own.open(first))).to.equal('abc');
      expect((await create(owner(), 'abc', named, own)).id).to.not.equal(first.id);
      expect((await create(whose, 'abc', { idempotencyKey: 'tuesday' }, own)).id).to.not.equal(first.id);
      // What was only compared has changed nothing of what counts.
      const { records } = await own.list(whose, { limit: 10, order: 'asc' });
      expect(records.map(({ id }) => id)).to.include(first.id);
    });

    it('are one file when they come at the same time', async () => {
      const own = open();
      const whose = owner();
      const send = (content: string): Promise<FileRecord> =>
        create(whose, content, { idempotencyKey: 'once' }, own);
      const [first, second] = await Promise.all([send('same'), send('same')]);
      expect(second).to.deep.equal(first);
      expect(await keysOf(own)).to.have.length(1);
      expect(await text(own.open(first))).to.equal('same');
    });

    it('are made anew after they were deleted, or their time was over', async () => {
      const own = open();
      const whose = owner();
      const named = { idempotencyKey: 'again' };
      const first = await create(whose, 'first', named, own);
      await own.remove(first.id, whose);
      const second = await create(whose, 'second', { ...named, expiresAt: clock.now() + 50 }, own);
      expect(second.id).to.equal(first.id);
      while (clock.now() < second.expiresAt) await new Promise((resolve) => setTimeout(resolve, 10));
      const third = await create(whose, 'third', named, own);
      expect(await text(own.open(await own.get(third.id, whose)))).to.equal('third');
      expect(await keysOf(own)).to.have.length(1);
    });
  });

  it('whose sending breaks off leave nothing behind, and count for nothing', async () => {
    const own = open({ maxFileBytesPerKey: 10 * MIB });
    const whose = owner();
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

  describe('whose record was kept, while the answer of Redis was lost', () => {
    const opened: Redis[] = [];
    after(() => {
      for (const own of opened) own.disconnect();
    });

    /** A way to Redis on which the answer to a SET is lost: `then` says what its client is told. */
    const losing = (then: (again: () => Promise<unknown>) => Promise<unknown>): Redis => {
      const own = testRedis();
      opened.push(own);
      const set = own.set.bind(own) as (...args: unknown[]) => Promise<unknown>;
      own.set = ((...args: unknown[]) => set(...args).then(() => then(() => set(...args)))) as typeof own.set;
      return own;
    };
    const withRedis = (own: Redis): Files =>
      new Files({
        redis: own,
        clock,
        settings: loadSettings({}, { filesUrl: join(folder, uniqueName('store')) }),
        logger: createLogger('silent', {}),
      });

    it('are kept where it is sent again', async () => {
      const own = losing((again) => again());
      const whose = owner();
      const at = withRedis(own);
      const record = await create(whose, 'abc', { idempotencyKey: 'again' }, at);
      expect(await text(at.open(await at.get(record.id, whose)))).to.equal('abc');
      expect((await at.list(whose, { limit: 10, order: 'asc' })).records).to.deep.equal([record]);
    });

    it('keep their objects where Redis is not there any more', async () => {
      const own = losing(async () => {
        own.disconnect();
        throw new Error('Connection is closed.');
      });
      const whose = owner();
      const at = withRedis(own);
      expect(await create(whose, 'abc', { idempotencyKey: 'lost' }, at).catch(() => 'lost')).to.equal('lost');
      const record = await files.get(namedFileId(whose, 'lost'), whose);
      expect(await text(at.open(record))).to.equal('abc');
    });
  });

  it('whose keeping Redis has done, and could not tell, lose nothing', async () => {
    let isLost = false;
    // The connection breaks behind the command, before its answer.
    const losing = new Proxy(redis, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          if (isLost) throw new Error('Connection is closed.');
          const answer: unknown = await value.apply(target, args);
          if (name !== 'set') return answer;
          isLost = true;
          throw new Error('Connection is closed.');
        };
      },
    });
    const filesUrl = join(folder, 'lost-answers');
    const own = open({ filesUrl });
    const cut = new Files({
      redis: losing,
      clock,
      settings: loadSettings({}, { filesUrl }),
      logger: createLogger('silent', {}),
    });
    const whose = owner();
    const named = { idempotencyKey: 'lost' };
    expect(await codeOf(create(whose, 'abc', named, cut))).to.include('Connection is closed.');
    const again = await create(whose, 'abc', named, own);
    expect(await text(own.open(again))).to.equal('abc');
    const { records } = await own.list(whose, { limit: 10, order: 'asc' });
    expect(records).to.deep.equal([again]);
    expect(await keysOf(own)).to.have.length(1);
  });

  describe('in a list', () => {
    it('come in order, page by page, also behind one that was deleted meanwhile', async () => {
      const whose = owner();
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) ids.push((await create(whose, `${i}`)).id);
      // Those of one millisecond are in the order of their ids.
      const all = await files.list(whose, { limit: 10, order: 'asc' });
      expect(all.records.map(({ id }) => id)).to.have.members(ids);
      expect(all.hasMore).to.equal(false);
      const asc = all.records.map(({ id }) => id);
      for (const order of ['asc', 'desc'] as const) {
        const expected = order === 'asc' ? asc : [...asc].reverse();
        const seen: string[] = [];
        let more = true;
        while (more) {
          const page = await files.list(whose, { limit: 2, order, after: seen.at(-1) });
          seen.push(...page.records.map(({ id }) => id));
          more = page.hasMore;
        }
        expect(seen).to.deep.equal(expected);
      }
      await files.remove(asc[1] ?? '', whose);
      const behind = await files.list(whose, { limit: 10, order: 'asc', after: asc[1] });
      expect(behind.records.map(({ id }) => id)).to.deep.equal(asc.slice(2));
      expect(await codeOf(files.list(whose, { limit: 10, order: 'asc', after: newFileId() }))).to.equal(
        'invalid_input',
      );
    });

    it('are those of a purpose, however many others there are', async () => {
      const whose = owner();
      const record = await create(whose, 'a');
      const output = { ...record, id: newFileId(), purpose: 'batch_output' } as const;
      await files.adopt({ ...output, createdAt: record.createdAt - 1000 });
      for (let i = 0; i < 120; i++) await files.adopt({ ...record, id: newFileId() });
      const { records, hasMore } = await files.list(whose, {
        limit: 1,
        order: 'desc',
        purpose: 'batch_output',
      });
      expect(records.map(({ id }) => id)).to.deep.equal([output.id]);
      expect(hasMore).to.equal(false);
      const others = await files.list(whose, { limit: 100, order: 'desc', purpose: 'batch' });
      expect(others.records).to.have.length(100);
      expect(others.hasMore).to.equal(true);
    });
  });
});
