import { jobRecordKey, MillraceError, ownedJobsKeys, type Settings } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { type JobRecord, ownerHash, readRecord } from './job-record.js';
import { NewestJobs } from './newest-jobs.js';
import { OWNER_COUNTS } from './owner-counts.js';

/** A record outlives its results by this, in ms, so that whoever comes late learns that they are gone. */
const GONE_MS = 24 * 3600 * 1000;
/** Ids read at once while a list is filtered, and most that are looked at for one page. */
const PAGE = 100;
const MOST_SCANNED = 1000;

/**
 * Counts a new request against its owner's limits, after clearing away those whose results are gone.
 *
 * KEYS  received, until, bytes, total
 * ARGV  id, receivedAt, keepUntil, bytes, now, most requests, most bytes, life of the keys (ms)
 * Returns 1 when it was counted; otherwise when the first of those kept goes (epoch ms), as a string.
 */
const COUNT = `${OWNER_COUNTS}
clear_lapsed(ARGV[5])
-- Sent again, because the first answer was lost with its connection.
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return 1 end
local total = tonumber(redis.call('GET', KEYS[4]) or '0')
local full = redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) or total + tonumber(ARGV[4]) > tonumber(ARGV[7])
if full then return first_to_go(ARGV[5]) end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
redis.call('INCRBY', KEYS[4], ARGV[4])
live_for(ARGV[8])
return 1`;

/** KEYS as above; ARGV: id. */
const DISCOUNT = `${OWNER_COUNTS}
discount(ARGV[1])`;

/**
 * Changes a record that is still as it was read. Not decoded, because what JSON of a client's stands in it may not
 * be to the decoder's taste. KEYS: record. ARGV: the record as it was, as it becomes.
 */
const CHANGE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`;

export type JobLimits = Pick<Settings, 'maxJobsPerKey' | 'maxJobBytesPerKey'>;

/** Where a page of a list ends: the next begins behind it. */
export interface ListCursor {
  receivedAt: number;
  id: string;
}

export interface ListWindow {
  /** Epoch ms, both included. */
  from: number;
  to: number;
  after?: ListCursor | undefined;
}

/** The records of durable requests in Redis, and what each owner has. */
export class JobRecords {
  /** Of all owners. */
  readonly newest: NewestJobs;
  readonly #redis: Redis;
  readonly #limits: JobLimits;

  constructor(redis: Redis, limits: JobLimits) {
    this.#redis = redis;
    this.#limits = limits;
    this.newest = new NewestJobs(redis);
  }

  /**
   * Keeps a new record. `now`: epoch ms of Redis's clock.
   * @throws MillraceError `job_limit` when its owner keeps as much as it may, `body_too_large` for what it never may.
   */
  async create(record: JobRecord, now: number): Promise<void> {
    const { id, owner, receivedAt, keepUntil, bytes } = record;
    const { maxJobsPerKey, maxJobBytesPerKey } = this.#limits;
    // No waiting would help.
    if (bytes > maxJobBytesPerKey) {
      throw new MillraceError(
        'body_too_large',
        `The request counts for ${bytes} bytes with its outputs; ${maxJobBytesPerKey} are the most that one API key may have kept.`,
        { field: 'body' },
      );
    }
    const lifeMs = Math.ceil(keepUntil - now + GONE_MS);
    const counted = await this.#redis.eval(
      COUNT,
      4,
      ...keysOf(owner),
      id,
      receivedAt,
      keepUntil,
      bytes,
      now,
      maxJobsPerKey,
      maxJobBytesPerKey,
      lifeMs,
    );
    if (counted !== 1) {
      const seconds = Math.ceil((Number(counted) - now) / 1000);
      throw new MillraceError('job_limit', undefined, { retryAfterSeconds: Math.max(1, seconds) });
    }
    await Promise.all([
      this.#redis.set(jobRecordKey(id), JSON.stringify(record), 'PX', lifeMs),
      this.newest.note(id, receivedAt),
    ]);
  }

  /** Forgets a record whose work was not accepted. */
  async drop({ id, owner }: JobRecord): Promise<void> {
    await Promise.all([this.#redis.unlink(jobRecordKey(id)), this.newest.forget(id)]);
    await this.#redis.eval(DISCOUNT, 4, ...keysOf(owner), id);
  }

  /** A record, whoever owns it. */
  async find(id: string): Promise<JobRecord | undefined> {
    return readRecord(await this.#redis.get(jobRecordKey(id)));
  }

  /** @throws MillraceError `job_not_found`, also for another owner's. */
  async read(id: string, owner: string): Promise<JobRecord> {
    const record = await this.find(id);
    if (record?.owner !== owner) throw new MillraceError('job_not_found', undefined, { field: 'job' });
    return record;
  }

  /** Notes that it was taken back. @returns false when that is said already. */
  async cancel({ id }: JobRecord, now: number): Promise<boolean> {
    const changed = await this.change(id, (record) => ({ ...record, cancelledAt: now }));
    return changed !== undefined;
  }

  /** Changes a record that was not taken back. @returns what it is now, or undefined where it was or is gone. */
  async change(id: string, change: (record: JobRecord) => JobRecord): Promise<JobRecord | undefined> {
    const key = jobRecordKey(id);
    for (;;) {
      const held = await this.#redis.get(key);
      const record = readRecord(held);
      if (held === null || !record || record.cancelledAt !== undefined) return undefined;
      const changed = change(record);
      if ((await this.#redis.eval(CHANGE, 1, key, held, JSON.stringify(changed))) === 1) return changed;
    }
  }

  /**
   * An owner's records, the newest first, that `matches` lets through: at most `most`, and fewer where many had to
   * be looked at. `next` is where to go on, absent at the end.
   */
  async list(
    owner: string,
    window: ListWindow,
    most: number,
    matches: (record: JobRecord) => Promise<boolean>,
  ): Promise<{ records: JobRecord[]; next?: ListCursor }> {
    const records: JobRecord[] = [];
    const { received } = ownedJobsKeys(ownerHash(owner));
    let to = String(Math.min(window.to, window.after?.receivedAt ?? window.to));
    let after = window.after;
    for (let scanned = 0; scanned < MOST_SCANNED; ) {
      const found = await this.#redis.zrevrangebyscore(
        received,
        to,
        window.from,
        'WITHSCORES',
        'LIMIT',
        0,
        PAGE,
      );
      const entries = entriesOf(found).filter((entry) => !after || isBehind(entry, after));
      for (const entry of entries) {
        scanned += 1;
        after = entry;
        const record = await this.find(entry.id);
        if (record && (await matches(record))) records.push(record);
        if (records.length === most) return { records, next: entry };
      }
      if (found.length < 2 * PAGE || !after) return { records };
      // Those received in the same ms as the last are asked for again, and left out by their ids.
      const next = String(after.receivedAt);
      if (entries.length === 0 && next === to) return { records };
      to = next;
    }
    return after ? { records, next: after } : { records };
  }
}

function keysOf(owner: string): [string, string, string, string] {
  const { received, until, bytes, total } = ownedJobsKeys(ownerHash(owner));
  return [received, until, bytes, total];
}

function entriesOf(found: readonly string[]): ListCursor[] {
  const entries: ListCursor[] = [];
  for (let i = 0; i + 1 < found.length; i += 2) {
    entries.push({ id: found[i] ?? '', receivedAt: Number(found[i + 1]) });
  }
  return entries;
}

/** Redis lists members of one score in the reverse order of their bytes. */
function isBehind(entry: ListCursor, cursor: ListCursor): boolean {
  return (
    entry.receivedAt < cursor.receivedAt || (entry.receivedAt === cursor.receivedAt && entry.id < cursor.id)
  );
}
