import type { SessionOptions } from '@millrace/shared';
import type { SessionThreadOptions } from '../session/messages.js';
import { SessionPool } from '../session/session-pool.js';
import type { Task } from '../tasks/task.js';
import type { Workload } from './workload.js';

/** Batches handed to a session: the one that runs and the next, as in serving. */
const SLOTS = 2;

/** Items a second of a model's session threads, kept busy for `ms` after a warm-up of one round each. */
export async function rawThroughput(
  model: Omit<SessionThreadOptions, 'session'>,
  options: SessionOptions,
  task: Task,
  workload: Workload,
  ms: number,
): Promise<number> {
  const pool = await SessionPool.open(options.threads, { ...model, session: options });
  try {
    for (const group of workload.groups) {
      await Promise.all(pool.clients.map((client) => client.run(task.assemble(group))));
    }
    let next = 0;
    let items = 0;
    const began = performance.now();
    let endedAt = began;
    const slot = async (): Promise<void> => {
      while (performance.now() - began < ms) {
        const group = workload.groups[next++ % workload.groups.length] ?? [];
        await pool.run(task.assemble(group));
        items += group.length;
        endedAt = performance.now();
      }
    };
    await Promise.all(Array.from({ length: options.threads * SLOTS }, slot));
    return (items * 1000) / (endedAt - began);
  } finally {
    await pool.release();
  }
}
