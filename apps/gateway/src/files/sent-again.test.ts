import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { keysOf, newOwner, OpenedFiles } from '../test-support/opened-files.js';
import { testRedis } from '../test-support/redis.js';
import { codeOf } from '../test-support/store-conformance.js';
import { type FileRecord, namedFileId } from './file-record.js';

describe('files that are sent again', () => {
  const opened = new OpenedFiles();
  const { clock, create, open, untilPast } = opened;
  before(() => opened.start());
  after(() => opened.stop());

  describe('under an Idempotency-Key', () => {
    it('are the same file for the same bytes, and no other for others', async () => {
      const own = open();
      const whose = newOwner();
      const named = { idempotencyKey: 'monday' };
      const first = await create(whose, 'abc', named, own);
      expect(await create(whose, 'abc', { ...named, filename: 'again.jsonl' }, own)).to.deep.equal(first);
      expect(await codeOf(create(whose, 'abd', named, own))).to.equal('idempotency_key_reused');
      expect(await codeOf(create(whose, '', named, own))).to.equal('idempotency_key_reused');
      expect(await keysOf(own)).to.have.length(1);
      expect(await text(own.open(first))).to.equal('abc');
      expect((await create(newOwner(), 'abc', named, own)).id).to.not.equal(first.id);
      expect((await create(whose, 'abc', { idempotencyKey: 'tuesday' }, own)).id).to.not.equal(first.id);
      // What was only compared has changed nothing of what counts.
      const { records } = await own.list(whose, { limit: 10, order: 'asc' });
      expect(records.map(({ id }) => id)).to.include(first.id);
    });

    it('are one file when they come at the same time', async () => {
      const own = open();
      const whose = newOwner();
      const send = (content: string): Promise<FileRecord> =>
        create(whose, content, { idempotencyKey: 'once' }, own);
      const [first, second] = await Promise.all([send('same'), send('same')]);
      expect(second).to.deep.equal(first);
      expect(await keysOf(own)).to.have.length(1);
      expect(await text(own.open(first))).to.equal('same');
    });

    it('are made anew after they were deleted, or their time was over', async () => {
      const own = open();
      const whose = newOwner();
      const named = { idempotencyKey: 'again' };
      const first = await create(whose, 'first', named, own);
      await own.remove(first.id, whose);
      const second = await create(whose, 'second', { ...named, expiresAt: clock.now() + 50 }, own);
      expect(second.id).to.equal(first.id);
      await untilPast(second.expiresAt);
      const third = await create(whose, 'third', named, own);
      expect(await text(own.open(await own.get(third.id, whose)))).to.equal('third');
      expect(await keysOf(own)).to.have.length(1);
    });
  });

  describe('whose record was kept, while the answer of Redis was lost', () => {
    const connections: Redis[] = [];
    after(() => {
      for (const own of connections) own.disconnect();
    });

    /** A way to Redis on which the answer to a SET is lost: `then` says what its client is told. */
    const losing = (then: (again: () => Promise<unknown>) => Promise<unknown>): Redis => {
      const own = testRedis();
      connections.push(own);
      const set = own.set.bind(own) as (...args: unknown[]) => Promise<unknown>;
      own.set = ((...args: unknown[]) => set(...args).then(() => then(() => set(...args)))) as typeof own.set;
      return own;
    };

    it('are kept where it is sent again', async () => {
      const own = losing((again) => again());
      const whose = newOwner();
      const at = open({}, own);
      const record = await create(whose, 'abc', { idempotencyKey: 'again' }, at);
      expect(await text(at.open(await at.get(record.id, whose)))).to.equal('abc');
      expect((await at.list(whose, { limit: 10, order: 'asc' })).records).to.deep.equal([record]);
    });

    it('keep their objects where Redis is not there any more', async () => {
      const own = losing(async () => {
        own.disconnect();
        throw new Error('Connection is closed.');
      });
      const whose = newOwner();
      const at = open({}, own);
      expect(await create(whose, 'abc', { idempotencyKey: 'lost' }, at).catch(() => 'lost')).to.equal('lost');
      const record = await opened.files.get(namedFileId(whose, 'lost'), whose);
      expect(await text(at.open(record))).to.equal('abc');
    });
  });

  it('whose keeping Redis has done, and could not tell, lose nothing', async () => {
    let isLost = false;
    // The connection breaks behind the command, before its answer.
    const losing = new Proxy(opened.redis, {
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
    const filesUrl = join(opened.folder, 'lost-answers');
    const own = open({ filesUrl });
    const cut = open({ filesUrl }, losing);
    const whose = newOwner();
    const named = { idempotencyKey: 'lost' };
    expect(await codeOf(create(whose, 'abc', named, cut))).to.include('Connection is closed.');
    const again = await create(whose, 'abc', named, own);
    expect(await text(own.open(again))).to.equal('abc');
    const { records } = await own.list(whose, { limit: 10, order: 'asc' });
    expect(records).to.deep.equal([again]);
    expect(await keysOf(own)).to.have.length(1);
  });
});
