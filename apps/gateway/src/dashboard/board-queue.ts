import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { Job } from 'bullmq';

/** What can't be done now, with why; bull-board answers it with this status. */
export class Refusal extends Error {
  readonly statusCode = 409;
}

/** A queue as bull-board sees it: what can't be done to a job is refused, and no failure of ours. */
export class BoardQueue extends BullMQAdapter {
  override async getJob(id: string): Promise<Job | undefined> {
    const job = await super.getJob(id);
    if (!job) return undefined;
    const promote = job.promote.bind(job);
    job.promote = async () => {
      if (!(await job.isDelayed())) throw new Refusal('The job waits for no time.');
      await promote();
    };
    return job;
  }
}
