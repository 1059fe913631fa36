import type { BatchingOptions } from '@millrace/shared';
import { type Predictor, planGroups } from '../planning/planner.js';
import { isFault, type Prepared, type Task } from '../tasks/task.js';
import type { SampleItem } from './sample-items.js';

/** What sessions are measured with: batches as the planner makes them of natural items. */
export interface Workload {
  groups: Prepared[][];
  items: number;
}

/** @throws Error when the model takes none of the samples. */
export async function planWorkload(
  task: Task,
  samples: readonly SampleItem[],
  batching: BatchingOptions,
  curve: Predictor,
): Promise<Workload> {
  const prepared = await task.prepare(samples.map(({ raw }) => raw));
  const sound = prepared.filter((item) => !isFault(item)) as Prepared[];
  if (sound.length === 0) throw new Error('the model takes none of its samples');
  const items = sound.map((item, urgency) => ({ ...item, urgency, alone: false }));
  return { groups: planGroups(items, batching, curve), items: items.length };
}
