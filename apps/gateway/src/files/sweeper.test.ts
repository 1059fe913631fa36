import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, FILES_SWEEP_KEY, fileRecordKey, loadSettings, RedisClock } from '@millrace/shared';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { testRedis, uniqueName } from '../test-support/redis.js';
import { codeOf, listed, pieces } from '../test-support/store-conformance.js';
import { type FileRecord, newFileId } from './file-record.js';
import { FileRecords } from './file-records.js';
import { LocalStore } from './local-store.js';
import { FileSweeper } from './sweeper.js';

const DAY_MS = 24 * 3600_000;

describe('the sweeping of files', () => {
  let redis: Redis;
  let folder: string;
  let store: LocalStore;
  let records: FileRecords;
  let sweeper: FileSweeper;
  const clock = new RedisClock();
  const owner = uniqueName('owner');

  before(async () => {
    redis = testRedis();
    await clock.start(redis);
    records = new FileRecords({ redis, clock, limits: loadSettings({}) });
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-sweep-'));
    store = new LocalStore(folder);
    sweeper = new FileSweeper({ redis, records, store, logger: createLogger('silent', {}) });
  });
  afterEach(() => rm(folder, { recursive: true }));
  after(() => {
    clock.stop();
    redis.disconnect();
  });

  async function object(key: string, ageMs = 0): Promise<string> {
    await store.put(key, pieces(Buffer.from(key)));
    const then = new Date(Date.now() - ageMs);
    await utimes(join(folder, key), then, then);
    return key;
  }

  async function record(id: string, keys: string[], keptMs = DAY_MS): Promise<FileRecord> {
    const now = Math.floor(clock.now());
    const segments = keys.map((key) => ({ key, bytes: key.length }));
    const bytes = segments.reduce((sum, each) => sum + each.bytes, 0);
    const made: FileRecord = {
      v: 1,
      id,
      owner,
      filename: 'a.jsonl',
      purpose: 'batch',
      createdAt: now,
      expiresAt: now + keptMs,
      bytes,
      segments,
    };
    await records.adopt(made);
    return made;
  }

  const left = async (): Promise<string[]> => (await listed(store)).map(({ key }) => key).sort();

  it('deletes what is over, objects and record, and nothing else', async () => {
    const [over, stays] = [newFileId(), newFileId()];
    await record(over, [await object(`files/${over}/0`), await object(`files/${over}/1`)], 0);
    const kept = await record(stays, [await object(`files/${stays}/0`)]);
    const swept = await sweeper.sweep();
    expect(swept.files).to.be.at.least(1);
    expect(await left()).to.deep.equal(kept.segments.map(({ key }) => key));
    expect(await records.find(over)).to.equal(undefined);
    expect(await redis.exists(fileRecordKey(over))).to.equal(0);
    expect(await records.read(stays, owner)).to.deep.equal(kept);
  });

  it('spares what was adopted anew with a later end', async () => {
    const id = newFileId();
    const key = await object(`files/${id}/0`);
    await record(id, [key], 0);
    await record(id, [key]);
    await sweeper.sweep();
    expect(await left()).to.deep.equal([key]);
    expect((await records.read(id, owner)).id).to.equal(id);
  });

  it('deletes objects that no record names once they are a day old', async () => {
    const [gone, young, partly] = [newFileId(), newFileId(), newFileId()];
    await object(`files/${gone}/0`, 2 * DAY_MS);
    await object(`files/${gone}/1`, 2 * DAY_MS);
    const spared = [
      await object(`files/${young}/0`, DAY_MS / 2),
      await object(`files/${partly}/0-2`, 2 * DAY_MS),
      // Not of our making, and not where files are.
      await object('files/readme/a', 2 * DAY_MS),
      await object(`other/${gone}/0`, 2 * DAY_MS),
    ];
    await object(`files/${partly}/0-1`, 2 * DAY_MS);
    await record(partly, [`files/${partly}/0-2`]);
    expect((await sweeper.sweep()).objects).to.equal(3);
    expect(await left()).to.deep.equal(spared.sort());
  });

  it('takes nothing for old because its own clock is wrong', async () => {
    const young = await object(`files/${newFileId()}/0`);
    const { now } = Date;
    Date.now = () => now() + 2 * DAY_MS;
    try {
      expect((await sweeper.sweep()).objects).to.equal(0);
    } finally {
      Date.now = now;
    }
    expect(await left()).to.deep.equal([young]);
  });

  it('spares, however old, what is held for a file in the making, until it is adopted', async () => {
    const id = newFileId();
    const stale = await object(`files/${id}/0-1`, 3 * DAY_MS);
    const good = await object(`files/${id}/0-2`, 3 * DAY_MS);
    await records.hold(id, clock.now() + DAY_MS);
    expect((await sweeper.sweep()).objects).to.equal(0);
    await record(id, [good]);
    expect((await sweeper.sweep()).objects).to.equal(1);
    expect(await left()).to.deep.equal([good]);
    expect(await codeOf(store.read(stale))).to.equal('file_not_found');
  });

  it('is done by one gateway at a time', async () => {
    await redis.del(FILES_SWEEP_KEY);
    const id = newFileId();
    await object(`files/${id}/0`, 2 * DAY_MS);
    const others = [0, 1, 2].map(
      () => new FileSweeper({ redis, records, store, logger: createLogger('silent', {}) }),
    );
    await redis.set(FILES_SWEEP_KEY, '1', 'PX', 60_000);
    await Promise.all(others.map((other) => other.sweepInTurn()));
    expect(await left()).to.have.length(1);
    await redis.del(FILES_SWEEP_KEY);
    await Promise.all(others.map((other) => other.sweepInTurn()));
    expect(await left()).to.deep.equal([]);
    expect(await redis.pttl(FILES_SWEEP_KEY)).to.be.above(50 * 60_000);
  });
});
