import type { GatewayMetrics, Logger, RedisClock } from '@millrace/shared';
import type { Redis } from 'ioredis';
import type { JobRecord } from '../jobs/job-record.js';
import type { JobStatus } from '../jobs/job-status.js';
import type { Jobs } from '../jobs/jobs.js';
import { Deliveries, type DeliverySettings } from './deliveries.js';
import { EndWatch } from './end-watch.js';

export interface CallbacksParts {
  redis: Redis;
  fetching: Redis;
  settings: DeliverySettings;
  clock: RedisClock;
  jobs: Jobs;
  /** A request as callbacks show it. */
  bodyOf(record: JobRecord, status: JobStatus): object;
  metrics: GatewayMetrics;
  logger: Logger;
}

/** Tells receivers of the ends of requests: the finding and the delivering, wired. */
export class Callbacks {
  readonly deliveries: Deliveries;
  readonly ends: EndWatch;

  constructor(parts: CallbacksParts) {
    const { records, statuses, notices } = parts.jobs;
    this.deliveries = new Deliveries(parts);
    this.ends = new EndWatch({ ...parts, records, statuses, notices, deliveries: this.deliveries });
    parts.jobs.tellEnds(this.ends);
  }

  start(): void {
    this.ends.start();
  }

  /** What is under way is given its time to end; the rest goes on at other gateways. */
  async stop(): Promise<void> {
    this.ends.stop();
    await this.deliveries.close();
  }
}
