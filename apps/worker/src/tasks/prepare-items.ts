import type { Answered, ItemFault, Prepared, RawItem, Task } from './task.js';

/**
 * Prepares items as the task does. When that fails as a whole (a thread died in it), the threads are tried
 * out and the items prepared one by one, so that only the one at fault fails.
 * @throws Error when nothing can be prepared any more.
 */
export async function prepareItems(
  task: Task,
  items: readonly RawItem[],
  onFailure: (error: Error) => void,
): Promise<(Prepared | Answered | ItemFault)[]> {
  try {
    return await task.prepare(items);
  } catch (error) {
    onFailure(error as Error);
    await task.warm();
  }
  if (items.length === 1) return [{ code: 'internal', message: 'The item could not be prepared.' }];
  const results: (Prepared | Answered | ItemFault)[] = [];
  for (const item of items) results.push(...(await prepareItems(task, [item], onFailure)));
  return results;
}
