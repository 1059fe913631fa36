import {
  type ItemOutcome,
  type JobData,
  jobId,
  type Part,
  PRIORITIES,
  type Stamps,
  splitItems,
  type Tensor,
} from '@millrace/shared';
import type { ItemFault, ItemOutput, Prepared, RawInput, RawItem } from '../tasks/task.js';
import type { FetchedJob } from './job-consumer.js';

/** One item of a part that this worker holds. */
export class HeldItem {
  prepared: Prepared | undefined;
  outcome: ItemOutcome | undefined;
  output: ItemOutput[] | undefined;

  constructor(
    readonly part: HeldPart,
    /** Position in its part. */
    readonly index: number,
    readonly raw: RawItem,
    /** Runs by itself, after a marker: it was there when a worker lost the job. */
    readonly alone: boolean,
  ) {}

  get size(): number {
    return this.prepared?.size ?? 0;
  }

  get shapeKey(): string {
    return this.prepared?.shapeKey ?? '';
  }

  get enqueuedAt(): number {
    return this.part.data.stamps.enqueued;
  }

  /** Priority class first, then the time of its enqueueing (epoch ms, under 2^43). */
  get urgency(): number {
    return this.part.priority * 2 ** 43 + this.enqueuedAt;
  }

  get bulk(): boolean {
    return this.part.priority >= PRIORITIES.bulk;
  }

  get settled(): boolean {
    return this.outcome !== undefined;
  }
}

/** One part that this worker holds, and what has become of its items. */
export class HeldPart {
  readonly items: HeldItem[];
  readonly stamps: Stamps = {};
  readonly batches = new Set<string>();
  /** Its own, or its job's where that was raised for having waited long. */
  readonly priority: number;
  /** Its reply is stored. */
  replied = false;
  /** Why none of its items can be run. */
  fault: ItemFault | undefined;
  #open: number;

  constructor(
    readonly job: HeldJob,
    readonly data: Part,
    inputs: readonly Tensor[],
    alone: boolean,
  ) {
    this.items = rawItems(inputs, data).map((raw, index) => new HeldItem(this, index, raw, alone));
    this.priority = Math.min(data.priority, job.fetched.job.priority || data.priority);
    this.#open = this.items.length;
  }

  get id(): string {
    return jobId(this.data.requestId, this.data.firstItem);
  }

  get settled(): boolean {
    return this.#open === 0;
  }

  /** Settles one item, once: what comes second is dropped. @returns whether the part is settled now. */
  settle(item: HeldItem, outcome: ItemOutcome, output?: ItemOutput[]): boolean {
    if (item.settled) return false;
    item.outcome = outcome;
    item.output = output;
    this.#open--;
    return this.settled;
  }

  /** The part was answered before this worker got it: nothing of it is run, and no reply goes out. */
  skip(): void {
    for (const item of this.items) item.outcome ??= { status: 'cancelled' };
    this.#open = 0;
    this.replied = true;
  }

  /** The latest time of a stage among the part's items. */
  stamp(stage: keyof Stamps, at: number): void {
    this.stamps[stage] = Math.max(this.stamps[stage] ?? 0, at);
  }
}

function rawItems(inputs: readonly Tensor[], { count, operation, parameters }: Part): RawItem[] {
  const items: Map<string, RawInput>[] = Array.from({ length: count }, () => new Map());
  for (const { name, datatype, shape, ...tensor } of inputs) {
    const inner = shape.slice(1);
    const cuts = splitItems({ name, datatype, shape, data: tensor.data });
    for (const [i, item] of items.entries()) {
      item.set(name, { datatype, shape: inner, data: cuts[i] ?? new Uint8Array(0) });
    }
  }
  return items.map((inputs) => ({ operation, parameters, inputs }));
}

/** A job that this worker holds: it completes with the reply of its last part. */
export class HeldJob {
  readonly parts: HeldPart[] = [];

  constructor(
    readonly fetched: FetchedJob,
    readonly data: JobData,
  ) {}

  get id(): string {
    return this.fetched.job.id ?? '';
  }

  get replied(): boolean {
    return this.parts.every((part) => part.replied);
  }

  addPart(data: Part, inputs: readonly Tensor[]): HeldPart {
    const part = new HeldPart(this, data, inputs, this.fetched.stalled > 0);
    this.parts.push(part);
    return part;
  }

  /** A part whose inputs are not to be had: the other parts of its job are no worse for it. */
  addFaultyPart(data: Part, fault: ItemFault): void {
    this.addPart(data, []).fault = fault;
  }
}
