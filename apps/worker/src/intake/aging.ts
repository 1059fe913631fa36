import { type Logger, PRIORITIES, type RedisClock } from '@millrace/shared';
import type { JobConsumer } from './job-consumer.js';

/** Time between two looks, in ms. */
const CHECK_MS = 1000;
/** Share of what is answered that goes to work raised for its age, for each class. */
const SHARE = 0.1;
const RAISED = [PRIORITIES.normal, PRIORITIES.bulk];

/**
 * Lets no class starve: what has waited for `agingMs` behind more urgent work goes on as interactive, at the end
 * of that class, and at most a tenth of what is answered for each class, so that urgent work hardly notices.
 */
export class Aging {
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly parts: {
      consumer: JobConsumer;
      clock: RedisClock;
      /** How long a job waits before it is raised, in ms. */
      agingMs: number;
      /** Jobs that this worker finishes a second. */
      jobsPerSecond: () => number;
      logger: Logger;
    },
  ) {}

  start(): void {
    this.#timer = setInterval(() => {
      this.raise().catch((err: Error) => this.parts.logger.debug({ err }, 'waiting work was not raised'));
    }, CHECK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Raises what has waited long enough now. */
  async raise(): Promise<void> {
    const { consumer, clock, agingMs, jobsPerSecond } = this.parts;
    const most = Math.max(1, Math.floor((SHARE * jobsPerSecond() * CHECK_MS) / 1000));
    for (const priority of RAISED) {
      for (const { id, addedAt } of await consumer.waitingLongest(priority, most)) {
        if (clock.now() - addedAt >= agingMs) await consumer.changePriority(id, PRIORITIES.interactive);
      }
    }
  }
}
