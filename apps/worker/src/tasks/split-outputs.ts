import { splitItems } from '@millrace/shared';
import type { WireTensor } from '../session/messages.js';
import type { ItemOutput } from './task.js';

/**
 * Cuts a run's outputs along their first axis.
 * @throws Error when an output's first axis is not the number of items that went in.
 */
export function splitOutputs(outputs: readonly WireTensor[], count: number): ItemOutput[][] {
  const items: ItemOutput[][] = Array.from({ length: count }, () => []);
  for (const output of outputs) {
    if (output.shape[0] !== count) {
      throw new Error(`output ${output.name} has shape [${output.shape}] for ${count} items`);
    }
    const shape = output.shape.slice(1);
    const cuts = splitItems(output);
    for (let i = 0; i < count; i++) {
      const data = cuts[i];
      if (data) items[i]?.push({ name: output.name, datatype: output.datatype, shape, data });
    }
  }
  return items;
}
