import { batchKey, MillraceError, OPEN_BATCHES_KEY, ownedBatchesKey } from '@millrace/shared';
import type { Redis } from 'ioredis';
import { ownerHash } from '../jobs/job-record.js';
import { type BatchRecord, hasEnded, readBatch } from './batch-record.js';

/** How long the record of a batch outlives its making, or its end where that is later, in ms. */
const KEPT_MS = 30 * 24 * 3600 * 1000;
/** Others changed the record in between, so many times in a row: something is wrong. */
const MOST_TRIES = 50;

/**
 * Makes a batch where none of its id is and its owner has not too many that go on.
 * KEYS record, owned, open. ARGV id, record, createdAt, most open, life (ms), now
 * Returns 1, 0 where the id is taken, -1 where there are too many.
 */
const CREATE = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', tonumber(ARGV[6]) - tonumber(ARGV[5]))
-- Those of its owner's that are open: the shorter list is looked through, for others wait meanwhile.
local few, many = KEYS[2], KEYS[3]
if redis.call('ZCARD', many) < redis.call('ZCARD', few) then few, many = many, few end
local open = 0
for _, id in ipairs(redis.call('ZRANGE', few, 0, -1)) do
  if redis.call('ZSCORE', many, id) then open = open + 1 end
end
if open >= tonumber(ARGV[4]) then return -1 end
redis.call('HSET', KEYS[1], 'record', ARGV[2], 'rev', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
return 1`;

/**
 * Replaces a record that nobody else has replaced meanwhile.
 * KEYS record, open. ARGV id, revision that was read, record, whether it has ended (1 or 0), life (ms)
 * Returns 1 when it was.
 */
const REPLACE = `
if redis.call('HGET', KEYS[1], 'rev') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'record', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'rev', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if ARGV[4] == '1' then redis.call('ZREM', KEYS[2], ARGV[1]) end
return 1`;

/** KEYS record. ARGV epoch, completed, failed. Returns the record's revision; nothing is told of a batch that is gone. */
const TELL = `
local rev = redis.call('HGET', KEYS[1], 'rev')
if rev then redis.call('HSET', KEYS[1], 'told', ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3]) end
return rev`;

/** How many lines of a batch have ended which way. */
export interface LineCounts {
  completed: number;
  failed: number;
}

/** A batch and the counts of its lines, which are newer than its checkpoint where it runs. */
export interface BatchView {
  record: BatchRecord;
  counts: LineCounts;
}

/** The records of batches in Redis. All changes go by {@link update}, so that of two at once one sees the other. */
export class BatchRecords {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * @returns false where there is one of that id already.
   * @throws MillraceError `job_limit`.
   */
  async create(record: BatchRecord, mostOpen: number): Promise<boolean> {
    const { id, owner, createdAt } = record;
    const keys = [batchKey(id), ownedBatchesKey(ownerHash(owner)), OPEN_BATCHES_KEY];
    const args = [id, JSON.stringify(record), createdAt, mostOpen, KEPT_MS, createdAt];
    const made = await this.#redis.eval(CREATE, keys.length, ...keys, ...args);
    if (made === -1) {
      throw new MillraceError('job_limit', `This API key has ${mostOpen} batches that have not ended.`, {
        retryAfterSeconds: 60,
      });
    }
    return made === 1;
  }

  /** @throws MillraceError `batch_not_found`, also for another owner's. */
  async read(id: string, owner: string): Promise<BatchView> {
    const view = await this.find(id);
    if (view?.record.owner !== owner) {
      throw new MillraceError('batch_not_found', undefined, { field: 'batch' });
    }
    return view;
  }

  async find(id: string): Promise<BatchView | undefined> {
    const [json, told] = await this.#redis.hmget(batchKey(id), 'record', 'told');
    const record = readBatch(json);
    return record && { record, counts: countsOf(record, told) };
  }

  /**
   * Changes a record.
   * @param change gives the record as it is to be, or undefined to leave it; called again where another change came
   * in between. What it throws is thrown.
   * @returns the record as it now is.
   * @throws MillraceError `batch_not_found`.
   */
  async update(id: string, change: (record: BatchRecord) => BatchRecord | undefined): Promise<BatchRecord> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const [json, revision] = await this.#redis.hmget(batchKey(id), 'record', 'rev');
      const record = readBatch(json);
      if (!record || !revision) throw new MillraceError('batch_not_found');
      const changed = change(record);
      if (!changed) return record;
      const args = [id, revision, JSON.stringify(changed), hasEnded(changed) ? 1 : 0, KEPT_MS];
      const done = await this.#redis.eval(REPLACE, 2, batchKey(id), OPEN_BATCHES_KEY, ...args);
      if (done === 1) return changed;
    }
    throw new MillraceError(
      'internal',
      undefined,
      {},
      { cause: new Error(`batch ${id} never stands still`) },
    );
  }

  /** Tells how far a runner has got since its last checkpoint. @returns the revision of the record, which changes with it. */
  async tell(
    { id, epoch }: Pick<BatchRecord, 'id' | 'epoch'>,
    { completed, failed }: LineCounts,
  ): Promise<string | undefined> {
    const told = [epoch, completed, failed].map(String);
    const revision = await this.#redis.eval(TELL, 1, batchKey(id), ...told);
    return revision === null ? undefined : String(revision);
  }

  /** The newest first. @throws MillraceError `invalid_input` for an `after` that is not known. */
  async list(
    owner: string,
    limit: number,
    after: string | undefined,
  ): Promise<{ batches: BatchView[]; hasMore: boolean }> {
    const key = ownedBatchesKey(ownerHash(owner));
    let from = 0;
    if (after !== undefined) {
      const rank = await this.#redis.zrevrank(key, after);
      if (rank === null) {
        const field = 'after';
        throw new MillraceError('invalid_input', `${field} is not the id of a batch of this API key.`, {
          field,
        });
      }
      from = rank + 1;
    }
    const ids = await this.#redis.zrevrange(key, from, from + limit);
    const found = await Promise.all(ids.slice(0, limit).map((id) => this.find(id)));
    return { batches: found.filter((view) => view !== undefined), hasMore: ids.length > limit };
  }

  /** Ids of all that have not ended, the oldest first. */
  open(): Promise<string[]> {
    return this.#redis.zrange(OPEN_BATCHES_KEY, '0', '-1');
  }

  /** Forgets what stands open without a record. */
  async forget(id: string): Promise<void> {
    await this.#redis.zrem(OPEN_BATCHES_KEY, id);
  }
}

/** What the runner told last counts while it is the newest one, and has told more than was written. */
function countsOf({ epoch, checkpoint }: BatchRecord, told: string | null | undefined): LineCounts {
  const { completed, failed } = checkpoint;
  const [toldEpoch, ...counts] = told?.split(' ').map(Number) ?? [];
  const [toldCompleted = 0, toldFailed = 0] = counts;
  const isNewer = toldEpoch === epoch && toldCompleted + toldFailed > completed + failed;
  return isNewer ? { completed: toldCompleted, failed: toldFailed } : { completed, failed };
}
