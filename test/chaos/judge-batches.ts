import type { BatchRun } from './history.js';

/** Of all batches of a run: how many were completed, and what became of their lines. */
export interface BatchTotals {
  files: number;
  lines: number;
  duplicated: number;
  missing: number;
  outOfOrder: number;
  wrong: number;
}

/** Each batch must be completed, and have each of its lines once, in order and with the right answer. */
export function judgeBatches(batches: readonly BatchRun[], problems: string[]): BatchTotals {
  const totals: BatchTotals = { files: 0, lines: 0, duplicated: 0, missing: 0, outOfOrder: 0, wrong: 0 };
  for (const { id, end, found, lines, from, to } of batches) {
    const span = `${Math.round(from)} to ${to === undefined ? '-' : Math.round(to)} ms`;
    if (end === 'completed' && found) totals.files++;
    else problems.push(`the batch ${id} (${lines} lines, ${span}) ended with ${end}`);
    if (!found) continue;
    totals.lines += lines;
    for (const kind of ['duplicated', 'missing', 'outOfOrder', 'wrong'] as const) {
      totals[kind] += found[kind];
      if (found[kind] > 0) problems.push(`${kind}: ${found[kind]} of the ${lines} lines of the batch ${id}`);
    }
    problems.push(...found.told.map((what) => `the batch ${id}: ${what}`));
  }
  return totals;
}
