import { type GatewayMetrics, type Logger, PRIORITIES, type PriorityClass } from '@millrace/shared';
import type { JobProducer } from './job-producer.js';

/** The queue's counts are read at most this often while requests come, in ms. */
const POLL_MS = 250;
/** A reading older than this, in ms, tells nothing any more: an overload that passed must not refuse anyone. */
const STALE_MS = 4 * POLL_MS;
/** After so many readings in a row that found jobs waiting, about a second, workers are known to be at their limit. */
const BACKLOGGED_READINGS = 4;
/** So long after the last of it, in ms, interactive work is expected; workers have the same. */
const INTERACTIVE_MS = 1000;
/** Weight of the newest job in the running mean. */
const SMOOTHING_PER_JOB = 0.05;

/** What goes first stands first. */
const CLASSES = Object.keys(PRIORITIES) as PriorityClass[];

/** What is known of the work of one class. */
interface ClassLoad {
  /** Jobs of all gateways that waited at the last reading. */
  waitingJobs: number;
  /** Items of this gateway's requests that are not answered. */
  ownItems: number;
  /** Items that this gateway added since that reading began. */
  addedItems: number;
  /** Items of this gateway that wait no longer, answered or given up, since that reading began. */
  settledItems: number;
  /** Running mean of items a job, as this gateway adds them. */
  itemsPerJob: number;
}

interface Load {
  /** When interactive work was last seen, in ms of the process's clock. */
  interactiveAt: number;
  of: Record<PriorityClass, ClassLoad>;
  /** Jobs of all gateways that workers held at the last reading. */
  activeJobs: number;
  /** Readings one after the other that found jobs waiting. */
  backlogged: number;
  readAt: number;
  reading: boolean;
  /** The next reading for the sake of items that were handed over. */
  following: NodeJS.Timeout | undefined;
}

/** How much waits in each queue, from its polled counts and what was added here since. */
export class QueueLoad {
  readonly #producer: JobProducer;
  readonly #metrics: GatewayMetrics;
  readonly #logger: Logger;
  readonly #loads = new Map<string, Load>();

  constructor(producer: JobProducer, metrics: GatewayMetrics, logger: Logger) {
    this.#producer = producer;
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /**
   * Estimate of the items that are not answered, waiting or held by workers, and go before a new request of a class:
   * those of its own and of the classes before it. Starts a new reading when the last one is old.
   */
  itemsAhead(queue: string, priority: PriorityClass): number {
    const load = this.#load(queue);
    const ageMs = performance.now() - load.readAt;
    if (!load.reading && ageMs >= POLL_MS) void this.read(queue);
    let counted = load.activeJobs * load.of[priority].itemsPerJob;
    let own = 0;
    for (const each of upTo(load, priority)) {
      counted += each.waitingJobs * each.itemsPerJob + each.addedItems - each.settledItems;
      own += each.ownItems;
    }
    // The first counts every gateway's, but only jobs; the second knows items, but only this gateway's.
    return ageMs >= STALE_MS ? own : Math.max(counted, own);
  }

  /** Whether jobs have been waiting for a while: then what is answered is all that can be. */
  backlogged(queue: string): boolean {
    return this.#load(queue).backlogged >= BACKLOGGED_READINGS;
  }

  /** Items of this gateway's requests that are not answered, of a class and those before it. */
  ownItems(queue: string, priority: PriorityClass): number {
    return upTo(this.#load(queue), priority).reduce((sum, { ownItems }) => sum + ownItems, 0);
  }

  /** Running mean of items a job. */
  itemsPerJob(queue: string, priority: PriorityClass): number {
    return this.#load(queue).of[priority].itemsPerJob;
  }

  /** Whether interactive work came lately: more of it is likely to come. */
  interactiveLately(queue: string): boolean {
    return performance.now() - this.#load(queue).interactiveAt < INTERACTIVE_MS;
  }

  added(queue: string, items: number, priority: PriorityClass): void {
    if (priority === 'interactive') this.#load(queue).interactiveAt = performance.now();
    const load = this.#load(queue).of[priority];
    load.addedItems += items;
    load.ownItems += items;
  }

  jobAdded(queue: string, items: number, priority: PriorityClass): void {
    const load = this.#load(queue).of[priority];
    load.itemsPerJob += (items - load.itemsPerJob) * SMOOTHING_PER_JOB;
  }

  /** Tells that this gateway looks no longer after a request's items: they wait, but in the queue alone. */
  handedOver(queue: string, items: number, priority: PriorityClass): void {
    this.#load(queue).of[priority].ownItems -= items;
    this.#follow(queue);
  }

  /** Nobody here hears of their end: the queue is counted until it is empty. */
  #follow(queue: string): void {
    const load = this.#load(queue);
    load.following ??= setTimeout(async () => {
      await this.read(queue);
      load.following = undefined;
      const left = CLASSES.some((each) => load.of[each].waitingJobs + load.of[each].addedItems > 0);
      if (left || load.activeJobs > 0) this.#follow(queue);
    }, POLL_MS).unref();
  }

  /** Tells that a request's items wait no longer. */
  settled(queue: string, items: number, priority: PriorityClass): void {
    const load = this.#load(queue).of[priority];
    load.ownItems -= items;
    load.settledItems += items;
  }

  /** Reads a queue's counts now. Never throws: while Redis is away, the last reading stands. */
  async read(queue: string): Promise<void> {
    const load = this.#load(queue);
    if (load.reading) return;
    load.reading = true;
    const before = CLASSES.map((each) => ({ ...load.of[each] }));
    load.readAt = performance.now();
    try {
      const { waiting, active } = await this.#producer.counts(queue);
      let all = 0;
      for (const [index, each] of CLASSES.entries()) {
        const now = load.of[each];
        // What was added while the reading was under way may or may not be in it; counting it is the safe side.
        now.addedItems -= before[index]?.addedItems ?? 0;
        now.settledItems -= before[index]?.settledItems ?? 0;
        now.waitingJobs = waiting[each];
        all += waiting[each];
      }
      load.activeJobs = active;
      // Other gateways' too.
      if (waiting.interactive > 0) load.interactiveAt = performance.now();
      load.backlogged = all > 0 ? load.backlogged + 1 : 0;
      this.#metrics.queueJobs.set({ queue, state: 'waiting' }, all);
      this.#metrics.queueJobs.set({ queue, state: 'active' }, active);
    } catch (err) {
      this.#logger.debug({ err, queue }, 'the queue could not be counted');
    } finally {
      load.reading = false;
    }
  }

  /** Brings the metrics of a queue up to date. `now`: epoch ms of Redis's clock. */
  async measure(queue: string, now: number): Promise<void> {
    try {
      const since = await this.#producer.oldestWaitingSince(queue);
      const seconds = since === undefined ? 0 : Math.max(0, now - since) / 1000;
      this.#metrics.queueOldestSeconds.set({ queue }, seconds);
      await this.read(queue);
    } catch (err) {
      this.#logger.debug({ err, queue }, 'the oldest waiting job could not be read');
    }
  }

  #load(queue: string): Load {
    let load = this.#loads.get(queue);
    if (!load) {
      load = {
        interactiveAt: Number.NEGATIVE_INFINITY,
        of: { interactive: nothing(), normal: nothing(), bulk: nothing() },
        activeJobs: 0,
        backlogged: 0,
        readAt: performance.now() - POLL_MS,
        reading: false,
        following: undefined,
      };
      this.#loads.set(queue, load);
    }
    return load;
  }
}

function nothing(): ClassLoad {
  return { waitingJobs: 0, ownItems: 0, addedItems: 0, settledItems: 0, itemsPerJob: 1 };
}

/** The loads of a class and of those before it. */
function upTo({ of }: Load, priority: PriorityClass): ClassLoad[] {
  return CLASSES.slice(0, CLASSES.indexOf(priority) + 1).map((each) => of[each]);
}
