import type { Logger, RedisClock, Settings } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { Admission } from '../admission/admission.js';
import type { JobBatcher } from '../inference/job-batcher.js';
import type { JobProducer } from '../inference/job-producer.js';
import type { ReplyStore } from '../inference/reply-store.js';
import { DurableRequests, type EndListener } from './durable.js';
import { JobRecords } from './job-records.js';
import { JobStatuses } from './job-status.js';
import { JobWatch } from './job-watch.js';
import { ReplyNotices } from './reply-notices.js';

/** What a gateway has for durable requests, wired. */
export class Jobs {
  readonly records: JobRecords;
  readonly statuses: JobStatuses;
  readonly notices: ReplyNotices;
  readonly watch: JobWatch;
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
    logger: Logger;
  }) {
    const { redis, subscriber, settings, logger } = parts;
    this.records = new JobRecords(redis, settings);
    this.statuses = new JobStatuses(parts);
    this.notices = new ReplyNotices(redis, subscriber);
    const { records, statuses, notices } = this;
    this.watch = new JobWatch({ records, statuses, notices, logger });
    const { watch } = this;
    const { maxJobItems } = settings;
    this.durable = new DurableRequests({ ...parts, records, statuses, notices, watch, maxJobItems });
  }

  /** Callbacks are taken from now on. */
  tellEnds(ends: EndListener): void {
    this.durable.ends = ends;
  }

  start(): Promise<void> {
    return this.notices.start();
  }

  stop(): void {
    this.watch.stop();
    this.notices.stop();
  }
}
