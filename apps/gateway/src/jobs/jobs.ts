import type { RedisClock, Settings } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { Admission } from '../admission/admission.js';
import type { JobBatcher } from '../inference/job-batcher.js';
import type { JobProducer } from '../inference/job-producer.js';
import type { ReplyStore } from '../inference/reply-store.js';
import { DurableRequests, type EndListener } from './durable.js';
import { JobRecords } from './job-records.js';
import { JobStatuses } from './job-status.js';
import { ReplyNotices } from './reply-notices.js';

/** What a gateway has for durable requests, wired. */
export class Jobs {
  readonly records: JobRecords;
  readonly statuses: JobStatuses;
  readonly notices: ReplyNotices;
  readonly durable: DurableRequests;

  constructor(parts: {
    redis: Redis;
    subscriber: Redis;
    clock: RedisClock;
    admission: Admission;
    producer: JobProducer;
    batcher: JobBatcher;
    store: ReplyStore;
    settings: Settings;
  }) {
    const { redis, subscriber, settings } = parts;
    this.records = new JobRecords(redis, settings);
    this.statuses = new JobStatuses(parts);
    this.notices = new ReplyNotices(subscriber);
    const { records, statuses, notices } = this;
    const { maxJobItems } = settings;
    this.durable = new DurableRequests({ ...parts, records, statuses, notices, maxJobItems });
  }

  /** Callbacks are taken from now on. */
  tellEnds(ends: EndListener): void {
    this.durable.ends = ends;
  }

  start(): Promise<void> {
    return this.notices.start();
  }

  stop(): void {
    this.notices.stop();
  }
}
