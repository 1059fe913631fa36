import type { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { Job, Queue } from 'bullmq';
import { BoardQueue, Refusal } from './board-queue.js';
import type { JobActions } from './job-actions.js';
import { linkOf } from './requests/links.js';

type Options = NonNullable<ConstructorParameters<typeof BullMQAdapter>[1]>;
/** States in which a job is still to be run. */
const WAITING = ['wait', 'prioritized', 'delayed'] as const;
type WaitingState = (typeof WAITING)[number];
/** Jobs that are removed together. */
const PAGE = 200;

/** A queue of inference as bull-board sees it: what is removed or sent again there has its effect on requests. */
export class InferenceQueue extends BoardQueue {
  readonly #queue: Queue;
  readonly #actions: JobActions;

  constructor(queue: Queue, actions: JobActions, options: Options) {
    super(queue, { ...options, externalJobUrl: linkOf });
    this.#queue = queue;
    this.#actions = actions;
  }

  override async getJob(id: string): Promise<Job | undefined> {
    const job = await super.getJob(id);
    return job && this.#governed(job, true);
  }

  override async getJobs(...asked: Parameters<BullMQAdapter['getJobs']>): Promise<Job[]> {
    const jobs = await super.getJobs(...asked);
    return jobs.map((job) => this.#governed(job, false));
  }

  override async clean(...[status, graceMs]: Parameters<BullMQAdapter['clean']>): Promise<void> {
    const state = WAITING.find((each) => each === status);
    if (status === 'active') throw new Refusal('Jobs that workers hold are not removed.');
    if (state) await this.#removeAll(state, Date.now() - graceMs);
    else await super.clean(status, graceMs);
  }

  override async empty(): Promise<void> {
    await this.#removeAll('wait', Date.now());
    await this.#removeAll('prioritized', Date.now());
  }

  override async obliterate({ force = false }: { force?: boolean } = {}): Promise<void> {
    // With jobs in hand BullMQ refuses, and then nothing should be gone.
    if (force || (await this.#queue.getActiveCount()) === 0) {
      for (const state of WAITING) await this.#removeAll(state, Date.now());
    }
    await super.obliterate({ force });
  }

  /** @param alone it was asked for by itself, so that whoever did is told what is wrong with it. */
  #governed(job: Job, alone: boolean): Job {
    const [remove, retry] = [job.remove.bind(job), job.retry.bind(job)];
    job.remove = () => this.#actions.remove(this.#queue.name, job, remove);
    job.retry = async (...asked) => {
      if (await this.#actions.isComplete(job)) {
        await this.#actions.retry(job, () => retry(...asked));
      } else if (alone) {
        throw new Refusal('Its input is no longer stored: large inputs go once they are answered.');
      }
    };
    return job;
  }

  /** @param before epoch ms: younger jobs stay. */
  async #removeAll(state: WaitingState, before: number): Promise<void> {
    for (let stay = 0; ; ) {
      const ids = await this.#queue.getRanges([state], stay, stay + PAGE - 1, true);
      if (ids.length === 0) return;
      const stayed = await Promise.all(ids.map((id) => this.#stays(id, before)));
      stay += stayed.filter(Boolean).length;
    }
  }

  /** Removes a job, unless it is too young. @returns whether it is still in its place. */
  async #stays(id: string, before: number): Promise<boolean> {
    const job = await this.getJob(id).catch(() => 'unreadable' as const);
    if (!job) return false;
    if (job === 'unreadable') {
      await this.#queue.remove(id);
      return false;
    }
    if (job.timestamp > before) return true;
    try {
      await job.remove();
    } catch (error) {
      // A worker was faster.
      if ((await job.getState()) !== 'active') throw error;
    }
    return false;
  }
}
