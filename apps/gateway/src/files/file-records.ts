import {
  FILES_EXPIRY_KEY,
  fileHoldKey,
  fileRecordKey,
  MillraceError,
  ownedFilesKeys,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import type { Redis } from 'ioredis';
import { ownerHash } from '../jobs/job-record.js';
import { OWNER_COUNTS } from '../jobs/owner-counts.js';
import { type FilePurpose, type FileRecord, isFileId, readFileRecord } from './file-record.js';

const HOUR_MS = 3600_000;
/** A record outlives its file by this, in ms, so that what it names can still be swept. */
const GONE_MS = 7 * 24 * HOUR_MS;
/** What is counted for a file that is being received counts for so long without news of it, in ms. */
const RECEIVING_MS = HOUR_MS;
/** A list can go on behind a file that was deleted, for so long, in ms. */
const DELETED_MS = HOUR_MS;
const MOST_DELETED = 1000;
/** Records that are read at once while a list is filtered. */
const PAGE = 100;

/**
 * Counts a file's bytes against its owner's limits, after clearing away those whose time is over.
 *
 * KEYS  created, until, bytes, total
 * ARGV  id, bytes needed, bytes wanted (as many of them as there is room for), until, now, most files, most bytes (empty:
 *       counted whatever the limits say), life of the keys (ms), when it was made (empty: not yet)
 * Returns the bytes that count for it now; where they would be too many, when the first of those kept goes (epoch
 * ms), as a string.
 */
const COUNT = `${OWNER_COUNTS}
clear_lapsed(ARGV[5])
local held = redis.call('HGET', KEYS[3], ARGV[1])
local counted = tonumber(held or '0')
local total = tonumber(redis.call('GET', KEYS[4]) or '0')
local grant = tonumber(ARGV[3])
if ARGV[7] ~= '' then
  local room = tonumber(ARGV[7]) - (total - counted)
  if tonumber(ARGV[2]) > room or (not held and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6])) then
    return first_to_go(ARGV[5])
  end
  grant = math.min(grant, room)
end
redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f', grant))
redis.call('INCRBY', KEYS[4], string.format('%.0f', grant - counted))
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
if ARGV[9] ~= '' then redis.call('ZADD', KEYS[1], ARGV[9], ARGV[1]) end
live_for(ARGV[8])
return grant`;

/** KEYS: created, until, bytes, total, deleted. ARGV: id, most deleted that are remembered, for how long (ms). */
const DISCOUNT = `${OWNER_COUNTS}
local made = redis.call('ZSCORE', KEYS[1], ARGV[1])
discount(ARGV[1])
if not made then return end
redis.call('ZADD', KEYS[5], made, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -1 - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[5], ARGV[3])`;

/**
 * Ids behind one, which may have been deleted lately. KEYS: created, deleted. ARGV: the one (empty: from the start), how
 * many, 1 for the newest first. Returns nothing where it is not known.
 */
const BEHIND = `
local newest = ARGV[3] == '1'
local rank = newest and 'ZREVRANK' or 'ZRANK'
local from = 0
if ARGV[1] ~= '' then
  local at = redis.call(rank, KEYS[1], ARGV[1])
  if at then
    from = at + 1
  else
    local made = redis.call('ZSCORE', KEYS[2], ARGV[1])
    if not made then return false end
    redis.call('ZADD', KEYS[1], made, ARGV[1])
    from = redis.call(rank, KEYS[1], ARGV[1])
    redis.call('ZREM', KEYS[1], ARGV[1])
  end
end
local to = from + tonumber(ARGV[2]) - 1
if newest then return redis.call('ZREVRANGE', KEYS[1], from, to) end
return redis.call('ZRANGE', KEYS[1], from, to)`;

export type FileLimits = Pick<
  Settings,
  'maxFileBytes' | 'maxFileBytesPerKey' | 'maxFilesPerKey' | 'fileKeepMs'
>;

export interface ListedFiles {
  purpose?: FilePurpose | undefined;
  /** Id of the file behind which to go on. */
  after?: string | undefined;
  limit: number;
  order: 'asc' | 'desc';
}

/** The records of files in Redis, and what each owner has. */
export class FileRecords {
  constructor(private readonly parts: { redis: Redis; clock: RedisClock; limits: FileLimits }) {}

  /**
   * Counts bytes of a file that is being received: at least `needed` in all, up to `wanted` where there is room. What is
   * not renewed lapses after an hour.
   * @param receiving names the receiving of it; never a file's id, under which there may be another already.
   * @returns how many count for it now.
   * @throws MillraceError `file_limit`.
   */
  async reserve(owner: string, receiving: string, needed: number, wanted: number): Promise<number> {
    const until = this.parts.clock.now() + RECEIVING_MS;
    return await this.#count(owner, receiving, { needed, wanted, until, isLimited: true });
  }

  /** Counts nothing any more for what was being received. */
  async release(owner: string, receiving: string): Promise<void> {
    await this.#discount(owner, receiving);
  }

  /**
   * Keeps the record of a new file, once that is stored. When it resolves, Redis has acknowledged all of it.
   * @returns a record that is there under this id already, and stays; undefined when this one was kept.
   */
  async create(record: FileRecord): Promise<FileRecord | undefined> {
    if (!(await this.#write(record, 'NX'))) {
      const there = await this.find(record.id);
      // It is this one where it was sent again, because the first answer was lost with its connection.
      if (!hasSameObjects(there, record)) return there;
    }
    await this.enlist(record);
    return undefined;
  }

  /** Forgets a record that may have been kept or not; never another one under its id. */
  async withdraw(record: FileRecord): Promise<void> {
    if (hasSameObjects(await this.find(record.id), record)) await this.drop(record);
  }

  /** Keeps a record whatever the limits say, in place of one of the same id. */
  async adopt(record: FileRecord): Promise<void> {
    await this.#write(record);
    await this.enlist(record);
    await this.parts.redis.unlink(fileHoldKey(record.id));
  }

  /** Lists a file among its owner's and counts it, whatever the limits say; also one that is there already. */
  async enlist({ owner, id, bytes, createdAt, expiresAt }: FileRecord): Promise<void> {
    await this.#count(owner, id, {
      needed: bytes,
      wanted: bytes,
      until: expiresAt,
      createdAt,
      isLimited: false,
    });
  }

  /** A record, whoever owns it, also of a file whose time is over. */
  async find(id: string): Promise<FileRecord | undefined> {
    if (!isFileId(id)) return undefined;
    return readFileRecord(await this.parts.redis.get(fileRecordKey(id)));
  }

  /** @throws MillraceError `file_not_found`, also for another owner's and for one whose time is over. */
  async read(id: string, owner: string, field = 'file'): Promise<FileRecord> {
    const record = await this.find(id);
    if (record?.owner !== owner || this.isOver(record)) {
      throw new MillraceError('file_not_found', undefined, { field });
    }
    return record;
  }

  isOver({ expiresAt }: FileRecord): boolean {
    return expiresAt <= this.parts.clock.now();
  }

  /** Forgets a file. @returns false when that was done already. */
  async drop({ id, owner }: FileRecord): Promise<boolean> {
    const { redis } = this.parts;
    const dropped = await redis.unlink(fileRecordKey(id));
    await this.#discount(owner, id);
    await this.noteExpiry(id, undefined);
    return dropped === 1;
  }

  /** @throws MillraceError `invalid_input` for an `after` that is not known. */
  async list(
    owner: string,
    { purpose, after, limit, order }: ListedFiles,
  ): Promise<{ records: FileRecord[]; hasMore: boolean }> {
    const records: FileRecord[] = [];
    const { created, deleted } = ownedFilesKeys(ownerHash(owner));
    for (let last = after; ; ) {
      const newest = order === 'desc' ? '1' : '';
      const ids = (await this.parts.redis.eval(BEHIND, 2, created, deleted, last ?? '', PAGE, newest)) as
        | string[]
        | null;
      if (ids === null) {
        // Between two pages a file can be forgotten for good; what a client named is another matter.
        if (last !== after) return { records, hasMore: false };
        throw new MillraceError('invalid_input', 'after is not the id of a file of this API key.', {
          field: 'after',
        });
      }
      for (const record of await Promise.all(ids.map((id) => this.find(id)))) {
        if (!record || this.isOver(record) || (purpose !== undefined && record.purpose !== purpose)) continue;
        if (records.length === limit) return { records, hasMore: true };
        records.push(record);
      }
      if (ids.length < PAGE) return { records, hasMore: false };
      last = ids.at(-1);
    }
  }

  /** Keeps what is written for a file without a record from being swept, until then (epoch ms). */
  async hold(id: string, until: number): Promise<void> {
    const lifeMs = Math.max(1, Math.ceil(until - this.parts.clock.now()));
    await this.parts.redis.set(fileHoldKey(id), '1', 'PX', lifeMs);
  }

  /** Holds nothing any more of what has been held. */
  async letGo(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.parts.redis.unlink(fileHoldKey(id))));
  }

  async isHeld(id: string): Promise<boolean> {
    return (await this.parts.redis.exists(fileHoldKey(id))) === 1;
  }

  /** Ids of files whose time is over, at most so many. */
  async due(most: number): Promise<string[]> {
    return await this.parts.redis.zrangebyscore(
      FILES_EXPIRY_KEY,
      '-inf',
      this.parts.clock.now(),
      'LIMIT',
      0,
      most,
    );
  }

  /** Notes when a file goes, or that there is none of this id. */
  async noteExpiry(id: string, expiresAt: number | undefined): Promise<void> {
    const { redis } = this.parts;
    if (expiresAt === undefined) await redis.zrem(FILES_EXPIRY_KEY, id);
    else await redis.zadd(FILES_EXPIRY_KEY, expiresAt, id);
  }

  async #discount(owner: string, id: string): Promise<void> {
    await this.parts.redis.eval(DISCOUNT, 5, ...allKeysOf(owner), id, MOST_DELETED, DELETED_MS);
  }

  async #write(record: FileRecord, onlyIf?: 'NX'): Promise<boolean> {
    const { clock, redis } = this.parts;
    // First: a record that nobody looks for at its end would be swept only by what it names.
    await this.noteExpiry(record.id, record.expiresAt);
    const lifeMs = Math.ceil(Math.max(0, record.expiresAt - clock.now()) + GONE_MS);
    const json = JSON.stringify(record);
    const key = fileRecordKey(record.id);
    const done = onlyIf
      ? await redis.set(key, json, 'PX', lifeMs, onlyIf)
      : await redis.set(key, json, 'PX', lifeMs);
    return done === 'OK';
  }

  async #count(
    owner: string,
    id: string,
    counted: { needed: number; wanted: number; until: number; createdAt?: number; isLimited: boolean },
  ): Promise<number> {
    const { clock, limits, redis } = this.parts;
    const { needed, wanted, until, createdAt, isLimited } = counted;
    const now = clock.now();
    const [created, ...others] = keysOf(owner);
    const answer = await redis.eval(
      COUNT,
      4,
      created,
      ...others,
      id,
      needed,
      wanted,
      until,
      now,
      limits.maxFilesPerKey,
      isLimited ? limits.maxFileBytesPerKey : '',
      Math.ceil(Math.max(limits.fileKeepMs, until - now) + GONE_MS),
      createdAt ?? '',
    );
    if (typeof answer === 'number') return answer;
    const seconds = Math.ceil((Number(answer) - now) / 1000);
    throw new MillraceError('file_limit', undefined, {
      field: 'file',
      retryAfterSeconds: Math.max(1, seconds),
    });
  }
}

/** Each new file has objects of its own. */
function hasSameObjects(one: FileRecord | undefined, other: FileRecord): boolean {
  return JSON.stringify(one?.segments) === JSON.stringify(other.segments);
}

function keysOf(owner: string): [string, string, string, string] {
  const { created, until, bytes, total } = ownedFilesKeys(ownerHash(owner));
  return [created, until, bytes, total];
}

function allKeysOf(owner: string): [string, string, string, string, string] {
  return [...keysOf(owner), ownedFilesKeys(ownerHash(owner)).deleted];
}
