import type { JobData, Part, Tensor } from '@millrace/shared';
import { HeldPart } from './held-part.js';
import type { FetchedJob } from './job-consumer.js';

/** A job that this worker holds: it completes when all items of all its parts are settled. */
export class HeldJob {
  readonly parts: HeldPart[] = [];

  constructor(
    readonly fetched: FetchedJob,
    readonly data: JobData,
  ) {}

  get id(): string {
    return this.fetched.job.id ?? '';
  }

  get settled(): boolean {
    return this.parts.every((part) => part.settled);
  }

  addPart(data: Part, inputs: readonly Tensor[]): HeldPart {
    const part = new HeldPart(this, data, inputs, this.fetched.stalled > 0);
    this.parts.push(part);
    return part;
  }
}
