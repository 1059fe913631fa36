import type { LinkWatch } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { Answer } from '../http/respond.js';

/**
 * How long a gateway may be silent before its running request counts as lost with it, in ms. A retry waits so long for one
 * that died: 3000 was all the time of a client that had said 3 s.
 */
export const LEASE_MS = 2000;
/** A larger answer is not kept: a retry of its request runs again. */
const MAX_KEPT_BYTES = 1024 * 1024;

const KINDS = { r: 'running', d: 'done', l: 'large' } as const;
const FINGERPRINT_END = 65;
const NEWLINE = 0x0a;

/**
 * What became of a request, as it lies in Redis: a letter, the request's fingerprint, and the rest by kind:
 * the id of the request that runs, or the answer that was given. Of an answer too large to keep there is only
 * the note that there was one.
 */
export type IdempotencyRecord =
  | { kind: 'running' | 'large'; fingerprint: string }
  | { kind: 'done'; fingerprint: string; answer: Answer };

/** A claim on a record: where it lies, and what it says while its request runs. */
export interface Claim {
  key: string;
  fingerprint: string;
  running: string;
}

/** The first stored answer wins, whoever ran; whoever runs another request under the key keeps it. */
const FINISH = `
local head = redis.call('GETRANGE', KEYS[1], 0, 64)
if head == 'd' .. ARGV[1] then return redis.call('GET', KEYS[1]) end
if head == '' or string.sub(head, 2) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return false`;

/** Also sets what a Redis that lost its memory has forgotten. */
const RENEW = `
local held = redis.call('GETRANGE', KEYS[1], 0, #ARGV[1])
if held == '' then return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') end
if held == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return false`;

const DROP = `
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The records in Redis, each changed in one step. */
export class IdempotencyRecords {
  readonly #redis: Redis;
  readonly #link: LinkWatch;
  readonly #keepMs: number;

  constructor(redis: Redis, link: LinkWatch, keepMs: number) {
    this.#redis = redis;
    this.#link = link;
    this.#keepMs = keepMs;
  }

  /** Takes the record if nobody has it; otherwise tells what it says. */
  async claim({ key, running }: Claim): Promise<IdempotencyRecord | undefined> {
    for (;;) {
      this.#requireLink();
      if (await this.#redis.set(key, running, 'PX', LEASE_MS, 'NX')) return undefined;
      const held = await this.#redis.getBuffer(key);
      // Gone in between: the next try decides.
      if (held) return decode(held);
    }
  }

  async renew({ key, running }: Claim): Promise<void> {
    await this.#redis.eval(RENEW, 1, key, running, LEASE_MS);
  }

  /** Keeps the answer; what is returned was stored earlier and counts instead. */
  async finish({ key, fingerprint }: Claim, answer: Answer): Promise<Answer | undefined> {
    this.#requireLink();
    const record = encodeDone(fingerprint, answer);
    const earlier = await this.#redis.callBuffer('EVAL', FINISH, 1, key, fingerprint, record, this.#keepMs);
    if (!Buffer.isBuffer(earlier)) return undefined;
    const decoded = decode(earlier);
    return decoded.kind === 'done' ? decoded.answer : undefined;
  }

  /** Lets go of a record that is still this claim's, so that a retry runs. */
  async drop({ key, running }: Claim): Promise<void> {
    await this.#redis.eval(DROP, 1, key, running);
  }

  /** Whether the same request still runs, whoever runs it. */
  async isRunning({ key, fingerprint }: Claim): Promise<boolean> {
    this.#requireLink();
    return (await this.#redis.getrange(key, 0, FINGERPRINT_END - 1)) === `r${fingerprint}`;
  }

  /** A Redis that is silent isn't waited for. */
  #requireLink(): void {
    if (!this.#link.answering) throw new Error('Redis does not answer.');
  }
}

export function runningRecord(fingerprint: string, requestId: string): string {
  return `r${fingerprint}${requestId}`;
}

function encodeDone(fingerprint: string, { body, ...head }: Answer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  if (bytes.byteLength > MAX_KEPT_BYTES) return Buffer.from(`l${fingerprint}`);
  return Buffer.concat([Buffer.from(`d${fingerprint}${JSON.stringify(head)}\n`), bytes]);
}

function decode(record: Buffer): IdempotencyRecord {
  const kind = KINDS[record.toString('latin1', 0, 1) as keyof typeof KINDS];
  const fingerprint = record.toString('latin1', 1, FINGERPRINT_END);
  if (kind !== 'done') return { kind, fingerprint };
  const end = record.indexOf(NEWLINE, FINGERPRINT_END);
  const head = JSON.parse(record.toString('utf8', FINGERPRINT_END, end)) as Omit<Answer, 'body'>;
  return { kind, fingerprint, answer: { ...head, body: record.subarray(end + 1) } };
}
