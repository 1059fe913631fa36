import { setImmediate as turn } from 'node:timers/promises';
import { type Logger, MillraceError } from '@millrace/shared';
import type { JobRecord } from './job-record.js';
import type { JobRecords } from './job-records.js';
import type { JobStatus, JobStatuses } from './job-status.js';
import type { ReplyNotices } from './reply-notices.js';

/** So often a job is looked at though nothing was heard of it, in ms: its position changes silently. */
const LOOK_MS = 1000;
/** After Redis could not be asked, in ms. */
const LOOK_AGAIN_MS = 250;
const TICK_MS = 250;
/** Silent looks a second of all jobs together, counted in parts: many of them are looked at less often. */
const MOST_LOOKS = 2000;
/** Of those, the ones that take more than a glance. */
const MOST_WHOLE_LOOKS = 200;
/** Whole looks under way. */
const MOST_TOGETHER = 64;
/** Followers that are told in one turn of the event loop: thousands may follow one job. */
const TOLD_TOGETHER = 128;

/** Who wants to know how a job stands. */
export interface Follower {
  /** Called once it is known, and whenever it has changed. */
  seen(record: JobRecord, status: JobStatus): void;
  /** It could not be looked at: MillraceError `job_not_found` for good, anything else for now. */
  failed(error: unknown): void;
}

interface Watched {
  readonly id: string;
  record: JobRecord;
  status: JobStatus | undefined;
  readonly followers: Set<Follower>;
  /** Those that were not told anything yet. */
  readonly fresh: Set<Follower>;
  lookAt: number;
  looking: boolean;
  unlisten(): void;
}

/**
 * Follows durable requests for whoever waits for them or listens: one look a job, however many follow it, when
 * something was heard of it, and now and then without. What all jobs together cost is bounded.
 */
export class JobWatch {
  readonly #parts: { records: JobRecords; statuses: JobStatuses; notices: ReplyNotices; logger: Logger };
  readonly #watched = new Map<string, Watched>();
  /** To be looked at as soon as there is room. */
  readonly #wanted = new Set<Watched>();
  #looking = 0;
  #glancing = false;
  #ticking: NodeJS.Timeout | undefined;

  constructor(parts: { records: JobRecords; statuses: JobStatuses; notices: ReplyNotices; logger: Logger }) {
    this.#parts = parts;
  }

  /** @returns what ends it. */
  follow(record: JobRecord, follower: Follower): () => void {
    const watched = this.#watched.get(record.id) ?? this.#begin(record);
    watched.followers.add(follower);
    watched.fresh.add(follower);
    this.#want(watched);
    return () => {
      watched.followers.delete(follower);
      watched.fresh.delete(follower);
      if (watched.followers.size === 0) this.#end(watched);
    };
  }

  stop(): void {
    for (const watched of [...this.#watched.values()]) this.#end(watched);
  }

  #begin(record: JobRecord): Watched {
    const watched: Watched = {
      id: record.id,
      record,
      status: undefined,
      followers: new Set(),
      fresh: new Set(),
      lookAt: 0,
      looking: false,
      unlisten: this.#parts.notices.listen(record.id, () => this.#want(watched)),
    };
    this.#watched.set(record.id, watched);
    this.#ticking ??= setInterval(() => void this.#glance(), TICK_MS);
    return watched;
  }

  #end(watched: Watched): void {
    if (this.#watched.get(watched.id) !== watched) return;
    this.#watched.delete(watched.id);
    this.#wanted.delete(watched);
    watched.unlisten();
    if (this.#watched.size > 0) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
  }

  #want(watched: Watched): void {
    this.#wanted.add(watched);
    this.#pump();
  }

  #pump(): void {
    for (const watched of this.#wanted) {
      if (this.#looking >= MOST_TOGETHER) return;
      // What was heard during a look is looked at behind it.
      if (watched.looking) continue;
      this.#wanted.delete(watched);
      watched.looking = true;
      this.#looking += 1;
      void this.#look(watched).finally(() => {
        watched.looking = false;
        this.#looking -= 1;
        this.#pump();
      });
    }
  }

  async #look(watched: Watched): Promise<void> {
    const { records, statuses } = this.#parts;
    watched.lookAt = performance.now() + this.#apartMs();
    try {
      const record = await records.find(watched.id);
      if (!record) throw new MillraceError('job_not_found', undefined, { field: 'job' });
      watched.record = record;
      await this.#tell(watched, await statuses.of(record));
    } catch (err) {
      watched.lookAt = performance.now() + LOOK_AGAIN_MS;
      this.#parts.logger.debug({ err, id: watched.id }, 'a job could not be looked at');
      for (const follower of [...watched.followers]) follower.failed(err);
    }
  }

  /** What is due, though nothing was heard of it. */
  async #glance(): Promise<void> {
    if (this.#glancing) return;
    this.#glancing = true;
    const due = this.#due();
    const { statuses } = this.#parts;
    await Promise.allSettled(
      due.map(async (watched) => {
        watched.lookAt = performance.now() + this.#apartMs();
        const { record, status: before } = watched;
        const status = before && (await statuses.glance(record, before));
        // What was heard meanwhile knows better.
        if (watched.looking || watched.status !== before) return;
        if (status) await this.#tell(watched, status);
        else this.#want(watched);
      }),
    );
    this.#glancing = false;
  }

  #due(): Watched[] {
    const due: Watched[] = [];
    const now = performance.now();
    let left = (MOST_LOOKS * TICK_MS) / 1000;
    let wholeLeft = (MOST_WHOLE_LOOKS * TICK_MS) / 1000;
    for (const watched of this.#watched.values()) {
      if (left <= 0) break;
      if (watched.lookAt > now || watched.looking || this.#wanted.has(watched)) continue;
      const takesAGlance = watched.status?.state === 'queued' || watched.status?.state === 'scheduled';
      if (!takesAGlance && wholeLeft-- <= 0) continue;
      left -= watched.record.parts.length;
      due.push(watched);
    }
    return due;
  }

  #apartMs(): number {
    return Math.max(LOOK_MS, (this.#watched.size * 1000) / MOST_LOOKS);
  }

  async #tell(watched: Watched, status: JobStatus): Promise<void> {
    const isNews = !watched.status || !isSame(status, watched.status);
    if (isNews) watched.status = status;
    let told = 0;
    for (const follower of isNews ? watched.followers : watched.fresh) {
      watched.fresh.delete(follower);
      follower.seen(watched.record, watched.status ?? status);
      told += 1;
      if (told % TOLD_TOGETHER === 0) await turn();
    }
  }
}

/** Whether two looks say the same. */
function isSame(one: JobStatus, other: JobStatus): boolean {
  return (
    one.state === other.state &&
    one.itemsDone === other.itemsDone &&
    one.position === other.position &&
    one.error?.message === other.error?.message
  );
}
